"""Engines beside each other: what a round costs on Flower, and what clients cost in one process.

    python benchmarks/engines.py rounds [--rounds 5] [--nodes 3] [--json]
    python benchmarks/engines.py local [--rounds 5] [--json]

`rounds`: SuperLink and SuperNodes as processes on this machine with TLS and authentication; each
round, in turn, with an empty message (what Flower itself costs), with a learning task that the
node's warm worker performs, and with the same task in a ClientApp that loads torch and the data
itself. All see the same moment's load; medians are shown. The aim: warm is at most 1.3 times empty.

`local` (needs foul[simulation]): clients per second and peak memory of the engines for one machine,
for 100 clients with a small network and for 20 clients with a ResNet-18, whose tensors are most of
the work. Each case has a process of its own, one after the other; all on two cores. Memory is that
of the process and all below it, what they share counted once; the first round is not timed. Beside
other work on the machine, clients per second also say how many processes an engine has (each gets a
turn), so CPU seconds per client stand beside them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tomli_w

from foul import Config, load_config
from foul.config.load import config_to_toml
from foul.config.schema import FlowerConfig
from foul.federation.build import build
from foul.flower.driver import Flower
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
DIGITS = SMALL | {"data.name": "digits", "data.image_size": 28}
CASES: dict[str, dict[str, Any]] = {
    "100 clients, small": {"clients.per_domain": 25, "data.max_per_domain": 1000},
    "20 clients, ResNet-18": {
        "clients.per_domain": 5,
        "data.max_per_domain": 100,
        "model.backbone": "resnet18",
    },
}
ENGINES: dict[str, dict[str, Any]] = {
    "in-process": {"workers": 1},
    "2 processes": {"workers": 2},
    "flower-sim": {"workers": 2, "engine": "flower-sim"},
}
FIGURES = ("clients_per_second", "cpu_seconds_per_client", "peak_mb")
LOOK = 0.3
"""Seconds between two looks at the memory in use."""


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
        reached = FlowerConfig(home=federation.folder.home, superlink=federation.connection)
        Flower.of(reached).start(APP, told)
        until = time.monotonic() + 3600
        while not out.is_file():
            if time.monotonic() > until:
                raise SystemExit(federation.log("superlink")[-2000:])
            time.sleep(1)
        time.sleep(1)
        seconds: dict[str, list[float]] = json.loads(out.read_text())
        return seconds


def local(count: int) -> dict[str, Any]:
    """All cases on all engines, with ratios to the engine in one process."""
    if find_spec("ray") is None:
        raise SystemExit("`local` needs Flower's simulation: pip install 'foul[simulation]'")
    found: dict[str, Any] = {"load_average_before": os.getloadavg(), "cores": os.cpu_count()}
    found["rounds"] = count
    for name in CASES:
        figures = {engine: _measured(name, engine, count) for engine in ENGINES}
        for engine in figures.values():
            for what in FIGURES:
                engine[f"{what}_ratio"] = engine[what] / figures["in-process"][what]
        found[name] = figures
    return found | {"load_average_after": os.getloadavg()}


def _measured(name: str, engine: str, count: int) -> dict[str, float]:
    """One case, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, __file__, "case", name, engine, "--rounds", str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{name}, {engine}:\n{ended.stderr[-2000:]}")
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def case(config: Config, count: int) -> dict[str, float]:
    """Rounds of learning in this process and those below it."""
    with Memory() as memory:
        began = time.perf_counter()
        setting = build(config)
        federation, state = setting.federation, LearningState(dict(setting.initial))
        seconds, work = [], []
        try:
            for _ in range(1 + count):
                learning_round(
                    federation, config.learning, state, federation.clients, setting.buffers, ""
                )
                seconds.append(time.perf_counter() - began)
                work.append(sum(map(_cpu_seconds, _tree(os.getpid()))))
        finally:
            federation.engine.close()
    clients = count * len(federation.clients)
    return {
        "clients_per_second": clients / (seconds[-1] - seconds[0]),
        "cpu_seconds_per_client": (work[-1] - work[0]) / clients,
        "peak_mb": memory.peak / 2**20,
        "seconds_to_first_round": seconds[0],
    }


class Memory:
    """The most memory that this process and all below it have used together."""

    def __enter__(self) -> "Memory":
        self.peak, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            self.peak = max(self.peak, sum(map(_share, _tree(os.getpid()))))


def _tree(root: int) -> list[int]:
    """This process and all below it."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        below.setdefault(parent, []).append(int(stat.parent.name))
    tree = [root]
    for pid in tree:
        tree += below.get(pid, [])
    return tree


def _cpu_seconds(pid: int) -> float:
    """What a process has spent, with its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _share(pid: int) -> int:
    """Bytes of a process, shared pages by its share in them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rounds", "local", "case"])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("engine", nargs="?", default="in-process")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--no-cold", action="store_true", help="leave the slow kind out")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    if told.what == "case":
        config = load_config(None, DIGITS | CASES[told.name] | ENGINES[told.engine])
        print(json.dumps(case(config, told.rounds)))
    elif told.what == "local":
        _show_local(local(told.rounds), told.json)
    else:
        _show_rounds(rounds(told.nodes, told.rounds, not told.no_cold), told.json)


def _show_local(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, indent=1))
        return
    for name in CASES:
        for engine, figures in found[name].items():
            told = [f"{figures[what]:.3g} ({figures[f'{what}_ratio']:.2f})" for what in FIGURES]
            print(
                f"{name:24} {engine:12} {told[0]:>14} clients/s {told[1]:>14} CPU s/client "
                f"{told[2]:>14} MB, first round after {figures['seconds_to_first_round']:.0f} s"
            )
    before, after = (found[f"load_average_{when}"][0] for when in ("before", "after"))
    print(f"load average {before:.1f} before, {after:.1f} after, on {found['cores']} cores")


def _show_rounds(seconds: dict[str, list[float]], as_json: bool) -> None:
    if as_json:
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
