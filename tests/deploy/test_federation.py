"""Real SuperLinks and SuperNodes on this machine: who gets in, who does not, what survives."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from small_runs import small_config

from foul.config.load import config_to_toml
from foul.deploy.certificates import make_authority, make_node_key
from foul.deploy.federation import RunningFederation, running_federation
from foul.deploy.plan import program
from foul.deploy.processes import marked
from foul.errors import UserError

pytest.importorskip("flwr", reason="needs foul[flower]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

PATIENCE = 600
"""Seconds for what takes ten on an idle machine, and a minute where a killed node is refused."""


@pytest.fixture(scope="module")
def short() -> Iterator[Path]:
    """A folder with a short name: sockets need that."""
    with TemporaryDirectory(prefix="foul-") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def federation(short: Path) -> Iterator[RunningFederation]:
    config = small_config(clients__per_domain=1)
    clients = ["north-0", "east-0"]
    with running_federation(config, short / "fed", clients, patience=PATIENCE) as running:
        yield running
    assert marked(str(running.folder.path)) == []


def wait_for(condition: Callable[[], object], within: float = PATIENCE) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.3)


@contextmanager
def node(
    federation: RunningFederation, home: Path, security: Sequence[str]
) -> Iterator[subprocess.Popen[str]]:
    """A SuperNode from outside, that knows the door."""
    home.mkdir()
    command = [program("flower-supernode"), "--superlink", federation.plan.door, *security]
    command += ["--host", "127.0.0.1", "--port", "0", "--max-retries", "2"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=federation.driver_env() | {"FLWR_HOME": str(home)},
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def security(federation: RunningFederation, folder: Path, case: str) -> list[str]:
    """What somebody without a registered key could try."""
    trusted = ["--root-certificates", str(federation.folder.authority)]
    if case == "unknown key":
        make_node_key(folder / "key", "nobody")
        return [*trusted, "--auth-supernode-private-key", str(folder / "key")]
    if case == "wrong authority":
        make_authority(folder)
        key = ["--auth-supernode-private-key", str(federation.folder.key("north-0"))]
        return ["--root-certificates", str(folder / "ca.crt"), *key]
    return {"no key": trusted, "no TLS": ["--insecure"]}[case]


@pytest.mark.parametrize("case", ["unknown key", "no key", "wrong authority", "no TLS"])
def test_who_is_not_registered_does_not_get_in(
    federation: RunningFederation, tmp_path: Path, case: str
) -> None:
    before = {n.id: n.status for n in federation.control.nodes()}
    with node(federation, tmp_path / "flwr", security(federation, tmp_path, case)) as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "SuperNode ID" not in printed
    assert {n.id: n.status for n in federation.control.nodes()} == before


def flwr(
    federation: RunningFederation, home: Path, port: int, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """`flwr ARGUMENTS` of somebody who has the authority's certificate."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "x"\n[superlink.x]\naddress = "127.0.0.1:{port}"\n'
        f'root-certificates = "{federation.folder.authority}"\n'
    )
    return subprocess.run(
        [program("flwr"), *arguments],
        env=federation.driver_env() | {"FLWR_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_control_calls_work_on_this_machine_only(
    federation: RunningFederation, tmp_path: Path
) -> None:
    listed = ("list", "x", "--format", "json")
    inside = flwr(federation, tmp_path / "in", federation.ports["superlink"], *listed)
    assert json.loads(inside.stdout[inside.stdout.index("{") :])["success"] is True
    outside = flwr(federation, tmp_path / "out", federation.ports["proxy"], *listed)
    assert '"success": true' not in outside.stdout
    assert "404" in outside.stdout + outside.stderr


def test_nobody_starts_a_run_through_the_door(
    federation: RunningFederation, tmp_path: Path
) -> None:
    from foul.deploy.project import init_project

    app = tmp_path / "app"
    init_project(app, "learn digits", tmp_path)
    started = flwr(
        federation,
        tmp_path / "out",
        federation.ports["proxy"],
        "run",
        str(app),
        "x",
        "--format=json",
    )
    assert '"success": true' not in started.stdout
    runs = flwr(
        federation, tmp_path / "in", federation.ports["superlink"], "list", "x", "--format", "json"
    )
    assert json.loads(runs.stdout[runs.stdout.index("{") :])["runs"] == []


def test_tasks_are_not_handed_out_without_the_secret(federation: RunningFederation) -> None:
    request = urllib.request.Request(
        f"https://{federation.address}/v1/runtime/acquire-task",
        data=b"",
        headers={"content-type": "application/protobuf", "accept": "application/protobuf"},
    )
    trust = ssl.create_default_context(cafile=str(federation.folder.authority))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10, context=trust)
    refused.value.close()
    assert refused.value.code == 401


def test_a_killed_superlink_comes_back_and_knows_its_nodes(federation: RunningFederation) -> None:
    before = federation.online()
    assert set(before) == {"north-0", "east-0"}
    old = federation.kill("superlink")
    wait_for(lambda: federation.pid("superlink") not in (0, old))
    wait_for(federation.control.healthy)
    wait_for(lambda: federation.online() == before)
    # The nodes were not started again: they waited.
    assert federation.notes()["supernode-north-0"].restarts == 0


def test_a_killed_worker_comes_back(federation: RunningFederation) -> None:
    old = federation.kill("worker-north-0")
    wait_for(lambda: federation.pid("worker-north-0") not in (0, old))
    wait_for(lambda: federation.listens("north-0"))


def test_an_unregistered_client_ends_and_nobody_waits_for_it(federation: RunningFederation) -> None:
    federation.unregister("east-0")
    assert federation.pid("supernode-east-0") == federation.pid("worker-east-0") == 0
    federation.start(lambda text: None, PATIENCE)
    assert set(federation.online()) == {"north-0"}
    with pytest.raises(UserError, match="No node is registered for client 'east-0'"):
        federation.unregister("east-0")
    # Its key is used up.
    with pytest.raises(UserError, match="The SuperLink refused"):
        federation.register(federation.folder.key("east-0").with_suffix(".pub"), "east-0")


def foul(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command `foul`, as a user types it."""
    return subprocess.run(
        [sys.executable, "-m", "foul", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(config_to_toml(small_config(clients__per_domain=1)))
    return path


def test_a_site_joins_when_its_key_is_registered_and_no_longer(
    federation: RunningFederation, short: Path, small: Path
) -> None:
    site, server = short / "site", federation.folder.path
    joined = foul(
        *("federation", "join", federation.plan.door, small, "--client", "north-0"),
        *("--ca", federation.folder.authority, "--dir", site, "--timeout", PATIENCE),
    )
    try:
        assert joined.returncode == 0, joined.stderr
        key = site / "nodes" / "north-0" / "key.pub"
        assert f"Send {key} to the server" in joined.stdout
        # The name is taken, until its node is withdrawn.
        refused = foul("federation", "register", "north-0", key, "--dir", server)
        assert refused.returncode == 2
        assert "Client 'north-0' has a node already (online)" in refused.stderr
        assert foul("federation", "register", "clinic-9", key, "--dir", server).returncode == 0
        there = RunningFederation.open(site)
        wait_for(lambda: there.has_joined("north-0"))
        assert "clinic-9" in federation.online()
        assert foul("federation", "unregister", "clinic-9", "--dir", server).returncode == 0
        wait_for(lambda: "clinic-9" not in federation.online())
        wait_for(lambda: not there.has_joined("north-0"))
    finally:
        assert foul("federation", "down", "--dir", site).returncode == 0
    assert marked(str(site)) == []


def test_after_a_crash_up_starts_what_is_missing_and_down_leaves_nothing(
    short: Path, small: Path
) -> None:
    place = short / "crash"
    up: tuple[object, ...] = ("federation", "up", small, "--clients", 1, "--dir", place, "--json")
    up += ("--timeout", PATIENCE)
    first = foul(*up, "--port", 0)
    try:
        assert first.returncode == 0, first.stderr
        assert "nodes online: 1 of 1" in first.stderr
        found = json.loads(first.stdout)
        assert found["up"] is True
        numbers = {p["name"]: p["pid"] for p in found["processes"]}
        again = json.loads(foul(*up).stdout)
        assert {p["name"]: p["pid"] for p in again["processes"]} == numbers
        for pid in numbers.values():
            os.kill(pid, signal.SIGKILL)
        restarted = foul(*up)
        assert restarted.returncode == 0, restarted.stderr
        after = json.loads(restarted.stdout)
        assert after["up"] is True
        assert not {p["pid"] for p in after["processes"]} & set(numbers.values())
        assert [n["status"] for n in after["nodes"]] == ["online"]
        assert [n["node_id"] for n in after["nodes"]] == [n["node_id"] for n in found["nodes"]]
    finally:
        assert foul("federation", "down", "--dir", place).returncode == 0
    assert marked(str(place)) == []


def test_what_does_not_start_is_told_with_its_log_and_stopped(short: Path, small: Path) -> None:
    place = short / "broken"
    foul("federation", "up", small, "--clients", 1, "--dir", place, "--port", 0, "--no-start")
    running = RunningFederation.open(place)
    broken = [
        replace(p, command=("sh", "-c", "echo my data is gone; exit 3"))
        if p.name == "worker-north-0"
        else p
        for p in running.plan.processes
    ]
    replace(running.plan, processes=tuple(broken)).write(running.folder.plan)
    outcome = foul("federation", "up", "--dir", place, "--timeout", PATIENCE)
    assert outcome.returncode == 1
    assert re.search(r"worker-north-0 ended \d+ times", outcome.stderr)
    assert "my data is gone" in outcome.stderr
    assert marked(str(place)) == []


def test_nodes_come_in_over_ipv6(short: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")
    config = small_config(clients__per_domain=1)
    with running_federation(
        config, short / "six", ["north-0"], host="::1", patience=PATIENCE
    ) as running:
        assert running.plan.door.startswith("[::1]:")
        assert set(running.online()) == {"north-0"}
