"""Commands, a unit and a server block that other programs can read."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from foul.deploy.certificates import make_authority, make_server_certificate
from foul.deploy.commands import nginx_server, shell_commands, systemd_unit
from foul.deploy.federation import RunningFederation
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import plan_server
from foul.deploy.ports import free_ports


@pytest.fixture
def federation() -> RunningFederation:
    folder = FederationFolder(Path("/srv/my fed"))
    return RunningFederation(folder, plan_server(folder, ["n-0"], "0.0.0.0", [1, 2, 3], {}))


def test_the_commands_are_those_of_the_plan(federation: RunningFederation) -> None:
    lines = [shlex.split(line, comments=True) for line in shell_commands(federation).splitlines()]
    commands = [line for line in lines if line]
    starts = [tuple(c) for c in commands if "register" not in c]
    for process, command in zip(federation.plan.processes, starts, strict=True):
        assert command[-len(process.command) :] == process.command
        assert command[0] == "env"
    (registration,) = [c for c in commands if "register" in c]
    assert registration[-4:] == ["/srv/my fed/nodes/n-0/key.pub", "foul", "--name", "n-0"]


def test_a_node_is_registered_before_it_starts(federation: RunningFederation) -> None:
    text = shell_commands(federation)
    assert text.index("supernode register") < text.index("flower-supernode")


def test_the_unit_runs_the_supervisor_as_this_user(federation: RunningFederation) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(systemd_unit(federation.folder, "fl"))
    assert unit["Service"]["User"] == "fl"
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[1:] == ["-m", "foul.deploy.supervisor", "--foreground", "/srv/my fed"]
    assert unit["Service"]["KillMode"] == "mixed"


def test_nginx_lets_the_same_paths_through_as_the_proxy(federation: RunningFederation) -> None:
    pytest.importorskip("flwr", reason="needs foul[flower]")
    from foul.deploy.proxy import FLEET

    text = nginx_server(federation, "fl.example.org")
    assert text.count("{") == text.count("}")
    found = re.search(r"location ~ (\S+) \{", text)
    assert found is not None
    for path in (
        *("/v1/fleet/pull-messages", "/v1/fleet/a", "/v1/control/x", "/v1/fleet/a/b", "/"),
        *("/v1/fleet/a\n", "/v1/fleet/-a", "/v1/fleet/", "/v1/fleet/a?b", "/V1/fleet/a"),
    ):
        ours = FLEET.fullmatch(path.encode()) is not None
        assert (re.match(found[1], path) is not None) == ours
    assert "proxy_pass https://127.0.0.1:2/v1/fleet/$call;" in text
    assert "proxy_ssl_verify on;" in text


@pytest.mark.parametrize(
    ("host", "lines"),
    [
        ("0.0.0.0", ["listen 1 ssl;"]),
        ("::", ["listen 1 ssl;", "listen [::]:1 ssl;"]),
        ("2001:db8::7", ["listen [2001:db8::7]:1 ssl;"]),
    ],
)
def test_nginx_listens_where_the_proxy_would(host: str, lines: list[str]) -> None:
    pytest.importorskip("flwr", reason="needs foul[flower]")
    folder = FederationFolder(Path("/srv/fed"))
    federation = RunningFederation(folder, plan_server(folder, [], host, [1, 2], {}))
    text = nginx_server(federation, "fl.example.org")
    assert [line.strip() for line in text.splitlines() if "listen " in line] == lines


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_nginx_itself_accepts_its_server_block(tmp_path: Path, host: str) -> None:
    pytest.importorskip("flwr", reason="needs foul[flower]")
    folder = FederationFolder(tmp_path / "fed")
    folder.create()
    make_authority(folder.certificates)
    make_server_certificate(folder.certificates, [])
    (port,) = free_ports(1)
    federation = RunningFederation(folder, plan_server(folder, [], host, [port, port + 1], {}))
    block = nginx_server(federation, "fl.example.org")
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}}\n"
        f"http {{ access_log off;\n{block} }}"
    )
    told = subprocess.run(
        ["nginx", "-t", "-c", str(tmp_path / "nginx.conf")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "test is successful" in told.stderr, told.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_itself_accepts_the_unit(federation: RunningFederation, tmp_path: Path) -> None:
    unit = tmp_path / "foul-server.service"
    unit.write_text(systemd_unit(federation.folder, "root"))
    told = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # It also complains about other units of the machine.
    assert unit.name not in told.stdout + told.stderr
    assert told.returncode == 0
