"""Real SuperLink, SuperExec and SuperNode processes with TLS and authentication on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_runs import running, small_config

from flower import faulty_node
from foul import Config, RunFolder, learn
from foul.config.load import config_to_toml
from foul.deploy.federation import RunningFederation, running_federation
from foul.federation import build
from foul.federation.engine import Engine
from foul.federation.messages import ClientInfo, Reply, Request, Tensors
from foul.unlearning.stage import unlearn

pytestmark = pytest.mark.slow

CLIENTS = ["east-0", "east-1", "north-0", "north-1"]
PATIENCE = 600.0
"""Seconds until a command must have come somewhere, on the slowest machine."""
CLOSE = 1e-5


@pytest.fixture(scope="module")
def config() -> Config:
    return small_config(
        learning__rounds=3, flower__clients=CLIENTS, flower__wait=300, flower__deadline=300
    )


@pytest.fixture(scope="module")
def federation(config: Config) -> Iterator[RunningFederation]:
    # Not below pytest's folder: a socket's path must be short.
    with (
        tempfile.TemporaryDirectory(prefix="foul-") as folder,
        running_federation(config, Path(folder, "fed"), CLIENTS, patience=PATIENCE) as federation,
    ):
        yield federation


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(federation: RunningFederation, config: Config, tmp_path: Path) -> Iterator[Start]:
    """Starts `foul ARGUMENTS` in a folder with `small.toml`; what still runs is killed."""
    (tmp_path / "small.toml").write_text(config_to_toml(config))
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "foul", *arguments],
            cwd=tmp_path,
            env=federation.driver_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """What a command printed; it must end with this code."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"{out}\n{err}"
    return out + err


def wait_for(what: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Until this is true; a process that ends before is shown."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until
        if process is not None and process.poll() is not None:
            pytest.fail(ended(process))
        time.sleep(0.1)


def last_status(federation: RunningFederation) -> str:
    """What the SuperLink says of the run that was submitted last."""
    listed = subprocess.run(
        [Path(sys.executable).parent / "flwr", "list", federation.connection, "--format", "json"],
        env=federation.driver_env(),
        capture_output=True,
        text=True,
        check=True,
    )
    return str(json.loads(listed.stdout)["runs"][0]["status"])


def rounds(run: Path) -> int:
    file = run / "rounds.jsonl"
    return len(file.read_text().splitlines()) if file.is_file() else 0


def server_app(federation: RunningFederation) -> int:
    """The process of the ServerApp: the SuperExec's child."""
    parent = federation.pid("superexec")
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next(int(child) for child in children if running(int(child)))


class SomeAway:
    """The engine of this process, without those who did not answer there."""

    def __init__(self, engine: Engine, away: Callable[[Request], bool]) -> None:
        self._engine, self._away = engine, away

    @property
    def clients(self) -> list[ClientInfo]:
        return list(self._engine.clients)

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            if self._away(request):
                yield Reply(request.client, error="away")
            else:
                yield from self._engine.run([request])

    def close(self) -> None:
        self._engine.close()


@contextmanager
def away(monkeypatch: pytest.MonkeyPatch, who: Callable[[Request], bool]) -> Iterator[None]:
    """Within, these requests are not answered in this process."""
    made = build.local_engine
    with monkeypatch.context() as patch:
        patch.setattr(build, "local_engine", lambda *args: SomeAway(made(*args), who))
        yield


def missing_in(run: Path) -> dict[int, list[str]]:
    """Who did not answer in which round of learning."""
    return {r["round"]: sorted(r["failures"]) for r in RunFolder.open(run).records()}


def difference(one: Tensors, other: Tensors) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in one)


def here(config: Config) -> Config:
    return config.model_copy(update={"engine": "local"})


def test_four_learn_one_is_killed_another_is_erased_and_the_weights_are_those_of_one_process(
    federation: RunningFederation,
    start: Start,
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, killed, erased = tmp_path / "run", "north-0", "east-1"
    federation.wait_online(CLIENTS, PATIENCE)
    command = start("learn", "small.toml", "engine=flower", "--out", "run")
    wait_for(lambda: rounds(run) >= 1, command)
    federation.hold(f"supernode-{killed}")
    federation.kill(f"supernode-{killed}", signal.SIGKILL)
    assert f"left out {killed}" in ended(command)
    missing = missing_in(run)
    since = min(number for number, names in missing.items() if names)
    assert since in (2, 3)
    assert all(names == ([killed] if number >= since else []) for number, names in missing.items())
    assert killed in RunFolder.open(run).summary()["not_evaluated"]

    told = ended(start("unlearn", "run", "-f", f"client:{erased}", "rounds=2", "flower.wait=5"))
    assert f"foul-client-{erased}" in told

    def is_away(request: Request) -> bool:
        return request.client == killed and (request.task != "learn" or request.round >= since)

    with away(monkeypatch, is_away):
        learn(here(config), tmp_path / "here")
        unlearn(tmp_path / "here", f"client:{erased}", overrides=["rounds=2"])
    for model in ("learned", f"foul-client-{erased}"):
        one, other = (RunFolder.open(tmp_path / n).load_model(model)[0] for n in ("run", "here"))
        assert difference(one, other) <= CLOSE
    federation.release(f"supernode-{killed}")


def test_a_client_that_hangs_sends_garbage_or_dies_is_left_out_and_comes_back(
    federation: RunningFederation, start: Start, config: Config, tmp_path: Path
) -> None:
    """It begins with the node that was killed before: Flower refuses it for up to a minute, then
    it is back."""
    bad, socket = "north-1", federation.folder.socket("north-1")
    federation.hold(f"worker-{bad}")
    federation.kill(f"worker-{bad}", signal.SIGKILL)
    wait_for(lambda: not federation.listens(bad))
    worker = subprocess.Popen(
        [sys.executable, faulty_node.__file__, str(tmp_path / "small.toml"), bad, str(socket)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        command = ["learning.rounds=5", "learning.patience=0", "flower.deadline=60"]
        ended(start("learn", "small.toml", "engine=flower", *command, "--out", "run"))
    finally:
        worker.kill()
        worker.communicate()
        federation.release(f"worker-{bad}")
    records = {r["round"]: r["failures"] for r in RunFolder.open(tmp_path / "run").records()}
    assert {number: list(failures) for number, failures in records.items()} == {
        faulty_node.HANGS: [bad],
        faulty_node.MISSHAPEN: [bad],
        faulty_node.GARBAGE: [bad],
        faulty_node.DIES: [bad],
        5: [],
    }
    # The node's clock or the server's, whichever looks first.
    assert re.search("longer than 60 s|no reply within", records[faulty_node.HANGS][bad])
    assert "has shape (3,)" in records[faulty_node.MISSHAPEN][bad]
    assert "garbage" in records[faulty_node.GARBAGE][bad]
    assert "exit code 7" in records[faulty_node.DIES][bad]


def test_caller_and_superlink_are_killed_and_nothing_is_lost(
    federation: RunningFederation,
    start: Start,
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = tmp_path / "run"
    command = ["learn", "small.toml", "engine=flower", "--out", "run"]
    wait_for(lambda: all(federation.listens(client) for client in CLIENTS))
    first = start(*command)
    wait_for(lambda: rounds(run) >= 1, first)
    first.kill()
    first.wait()
    federation.kill("superlink", signal.SIGKILL)
    told = ended(start(*command, "--resume"))
    assert "following it" in told
    assert not list(tmp_path.glob(".*.job"))
    missing = missing_in(run)
    assert list(missing) == [1, 2, 3]
    with away(monkeypatch, lambda r: r.task == "learn" and r.client in missing[r.round]):
        learn(here(config), tmp_path / "here")
    one, other = (RunFolder.open(tmp_path / name).load_model()[0] for name in ("run", "here"))
    assert difference(one, other) <= CLOSE


def test_a_killed_server_app_is_a_failed_command_that_can_be_resumed(
    federation: RunningFederation, start: Start, config: Config, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = ["learn", "small.toml", "engine=flower", "--out", "run"]
    first = start(*command)
    wait_for(lambda: rounds(run) >= 1, first)
    os.kill(server_app(federation), signal.SIGKILL)
    told = ended(first, 1).splitlines()[-1]
    assert re.match(r"foul: Flower run \d+ ended without an outcome \(finished:failed\)", told)
    ended(start(*command, "--resume"))
    assert RunFolder.open(run).learned()
    assert list(missing_in(run)) == [1, 2, 3]


def test_a_command_that_fails_there_fails_here(
    federation: RunningFederation, start: Start, tmp_path: Path
) -> None:
    told = ended(
        start(
            "learn",
            "small.toml",
            "engine=flower",
            "flower.clients=[nobody]",
            "flower.wait=1",
            "--out",
            "run",
        ),
        2,
    )
    assert "foul: Within 1 s, nobody did not connect" in told
    assert not (tmp_path / "run").exists()
    # The driver answers as soon as the outcome is there; the run ends when its process does.
    wait_for(lambda: last_status(federation) == "finished:failed")
