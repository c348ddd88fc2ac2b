"""What a real SuperNode's connection carries, beside what the ledger says it does."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from small_runs import small_config

from flower.counting_door import counting_door
from foul import RunFolder
from foul.config.load import config_to_toml
from foul.deploy.federation import running_federation
from foul.deploy.processes import gone

CLIENTS = ["east-0", "north-0"]
SLACK = 1.05


@pytest.mark.slow
def test_the_wire_carries_what_the_ledger_says_and_hardly_more(tmp_path: Path) -> None:
    """TLS, authentication, polling and heartbeats included, for a network of 11 M parameters."""
    config = small_config(
        clients__per_domain=1,
        model__backbone="resnet18",
        model__width=0.8,
        learning__rounds=2,
        learning__l2u={"generator_epochs": 0.2, "mid_epochs": 0.2},
        flower__clients=CLIENTS,
        flower__wait=300,
    )
    (tmp_path / "large.toml").write_text(config_to_toml(config))
    with (
        tempfile.TemporaryDirectory(prefix="foul-") as folder,
        running_federation(config, Path(folder, "fed"), CLIENTS, patience=600) as federation,
    ):
        host, _, port = federation.plan.door.partition(":")
        own = next(p for p in federation.plan.processes if p.name == "supernode-north-0")
        federation.hold(own.name)
        old = federation.kill(own.name, signal.SIGTERM)
        assert gone([old], 60)
        with counting_door(host, int(port)) as counts:
            there = [
                f"127.0.0.1:{counts.port}" if w == federation.plan.door else w for w in own.command
            ]
            # A SuperNode starts its helper by name.
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            environment = os.environ | dict(own.environment) | {"PATH": path}
            learn = ["-m", "foul", "learn", "large.toml", "engine=flower", "-o", "run"]
            with kept_running(there, environment):
                learned = subprocess.run(
                    [sys.executable, *learn],
                    cwd=tmp_path,
                    env=federation.driver_env(),
                    capture_output=True,
                    text=True,
                    timeout=900,
                    check=False,
                )
                assert learned.returncode == 0, learned.stderr
    run = RunFolder.open(tmp_path / "run")
    learning = [record["costs"]["north-0"] for record in run.records()]
    # Clients are sent the same at the end, to evaluate it.
    evaluation = run.summary()["costs"]["evaluation"]["bytes_down"] / len(CLIENTS)
    down = sum(cost["bytes_down"] for cost in learning) + evaluation
    up = sum(cost["bytes_up"] for cost in learning)
    size = sum(tensor.nbytes for tensor in run.load_model()[0].values())
    assert size > 40e6
    assert down > 2.5 * size
    print(f"down {counts.down / down:.4f}, up {counts.up / up:.4f} times the ledger's bytes")
    assert 1 <= counts.down / down <= SLACK
    assert 1 <= counts.up / up <= SLACK


@contextmanager
def kept_running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[None]:
    """A SuperNode that is started again if it ends: as long as the SuperLink takes the last one
    with its key for alive, because its sign-off was late or lost, it refuses another."""

    def start() -> subprocess.Popen[bytes]:
        # With its helper in a group of its own, which outlives a SuperNode that was refused.
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def watch() -> None:
        while not done.wait(1):
            if nodes[-1].poll() is not None:
                nodes.append(start())

    nodes, done = [start()], threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        for node in nodes:
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGTERM)
            node.wait(60)
