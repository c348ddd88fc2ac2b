"""Engines beside each other: what a round costs on Flower, and what clients cost in one process.

    python benchmarks/engines.py rounds [--rounds 5] [--nodes 3] [--json]
    python benchmarks/engines.py local [--json]

`rounds`: SuperLink and SuperNodes as processes on this machine with TLS and authentication; each
round, in turn, with an empty message (what Flower itself costs), with a learning task that the
node's warm worker performs, and with the same task in a ClientApp that loads torch and the data
itself. All see the same moment's load; medians are shown. The aim: warm is at most 1.3 times empty.

`local`: clients per second and peak memory of the engines for one machine, for 100 clients with a
small network and for 20 clients with a ResNet-18. Each case has a process of its own.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomli_w

from foul import Config, load_config
from foul.config.load import config_to_toml
from foul.federation.build import build
from foul.learning.rounds import LearningState, learning_round

APP = Path(__file__).parent / "flower_rounds"
LIMIT = 1.3
SMALL = {
    "data.name": "synthetic",
    "data.image_size": 16,
    "model.backbone": "tiny",
    "model.decoder_channels": 8,
    "learning.l2u.generator_epochs": 0.1,
    "learning.l2u.mid_epochs": 0.1,
    "workers": 1,
    "threads": 1,
}
DIGITS = SMALL | {"data.name": "digits", "data.image_size": 28, "data.max_per_domain": 1000}
CASES: dict[str, dict[str, Any]] = {
    "100 clients, small": {"clients.per_domain": 25},
    "20 clients, ResNet-18": {"clients.per_domain": 5, "model.backbone": "resnet18"},
}


def rounds(nodes: int, count: int, cold: bool) -> dict[str, list[float]]:
    """Seconds of every round, by kind."""
    from foul.deploy.federation import running_federation

    config = load_config(None, SMALL | {"clients.per_domain": 1})
    clients = ["east-0", "north-0", "south-0", "west-0"][:nodes]
    with (
        tempfile.TemporaryDirectory(prefix="foul-") as place,
        running_federation(config, Path(place, "fed"), clients) as federation,
    ):
        federation.wait_online(clients, 300)
        out, file, told = (Path(place, n) for n in ("seconds.json", "small.toml", "run.toml"))
        file.write_text(config_to_toml(config))
        settings = {"out": str(out), "config": str(file), "rounds": count, "cold": cold}
        told.write_text(tomli_w.dumps(settings))
        flwr = str(Path(sys.executable).parent / "flwr")
        subprocess.run(
            [flwr, "run", str(APP), federation.connection, "--run-config", str(told)],
            env=federation.driver_env(),
            check=True,
            capture_output=True,
        )
        until = time.monotonic() + 3600
        while not out.is_file():
            if time.monotonic() > until:
                raise SystemExit(federation.log("superlink")[-2000:])
            time.sleep(1)
        time.sleep(1)
        seconds: dict[str, list[float]] = json.loads(out.read_text())
        return seconds


def local(name: str, workers: int) -> dict[str, float]:
    """Clients per second and peak memory of one case, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, __file__, "case", name, str(workers)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def case(config: Config) -> dict[str, float]:
    """Three rounds of learning in this process and its children."""
    setting = build(config)
    federation, state = setting.federation, LearningState(dict(setting.initial))
    try:
        learning_round(federation, config.learning, state, federation.clients, setting.buffers, "")
        began = time.perf_counter()
        for _ in range(2):
            learning_round(
                federation, config.learning, state, federation.clients, setting.buffers, ""
            )
        seconds = time.perf_counter() - began
    finally:
        federation.engine.close()
    peak = sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"clients_per_second": 2 * len(federation.clients) / seconds, "peak_mb": peak / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rounds", "local", "case"])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("workers", nargs="?", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--no-cold", action="store_true", help="leave the slow kind out")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    if told.what == "case":
        config = load_config(None, DIGITS | CASES[told.name] | {"workers": told.workers})
        print(json.dumps(case(config)))
        return
    if told.what == "local":
        found = {
            f"{name}, {workers} process{'es' if workers > 1 else ''}": local(name, workers)
            for name in CASES
            for workers in (1, 2)
        }
        if told.json:
            print(json.dumps(found, indent=1))
            return
        for name, figures in found.items():
            rate, peak = figures["clients_per_second"], figures["peak_mb"]
            print(f"{name:40} {rate:8.1f} clients/s {peak:8.0f} MB")
        return
    seconds = rounds(told.nodes, told.rounds, not told.no_cold)
    if told.json:
        print(json.dumps(seconds))
        return
    # The first round of each kind finds caches cold.
    medians = {kind: statistics.median(values[1:] or values) for kind, values in seconds.items()}
    for kind, median in medians.items():
        every = " ".join(f"{value:.1f}" for value in seconds[kind])
        print(f"{kind:6} {median:6.2f} s, {median / medians['empty']:.2f} times empty ({every})")
    verdict = "within" if medians["warm"] <= LIMIT * medians["empty"] else "ABOVE"
    print(f"warm is {verdict} {LIMIT} times empty")


if __name__ == "__main__":
    main()
