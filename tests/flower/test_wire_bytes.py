"""What a real SuperNode's connection carries, beside what the ledger says it does."""

import os
import signal
import subprocess
import sys
import tempfile
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
        # It signs off on its way out; until then the SuperLink refuses a second one with its key.
        assert gone([old], 60)
        with counting_door(host, int(port)) as counts:
            there = [
                f"127.0.0.1:{counts.port}" if w == federation.plan.door else w for w in own.command
            ]
            # A SuperNode starts its helper by name.
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            environment = os.environ | dict(own.environment) | {"PATH": path}
            node = subprocess.Popen(there, env=environment)
            try:
                learned = subprocess.run(
                    [
                        sys.executable,
                        "-m",
                        "foul",
                        "learn",
                        "large.toml",
                        "engine=flower",
                        "-o",
                        "run",
                    ],
                    cwd=tmp_path,
                    env=federation.driver_env(),
                    capture_output=True,
                    text=True,
                    timeout=900,
                    check=False,
                )
                assert learned.returncode == 0, learned.stderr
            finally:
                node.terminate()
                node.wait(60)
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
