"""A small search for the learning recipe of a data set: which settings reach the best plateau?

    python benchmarks/recipes.py pacs64 --path PACS64.zip --rounds 12
    python benchmarks/recipes.py digits --rounds 10 --only momentum,batch16

Each variant is a line of `VARIANTS`. Variants are compared on validation accuracy; the test sets
are not looked at. Results are kept in a JSON file by a hash of the configuration, so a search that
was stopped continues where it stopped.
"""

import argparse
import json
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foul import Config, Observer, learn, load_config
from foul.runs.atomic import write_text

BASE: dict[str, dict[str, Any]] = {
    "digits": {"data.name": "digits", "data.image_size": 28, "model.backbone": "small"},
    "digits28": {"data.name": "digits28", "data.image_size": 28, "model.backbone": "small"},
    "pacs64": {
        "data.name": "pacs",
        "data.image_size": 64,
        "model.backbone": "resnet18",
        "model.width": 0.25,
        "model.split": 2,
        "learning.augment.flip": True,
    },
}

VARIANTS: dict[str, dict[str, Any]] = {
    "batchnorm": {"model.norm": "batch"},
    "groupnorm": {"model.norm": "group"},
    "batch16": {"model.norm": "group", "learning.batch_size": 16},
    "momentum": {"model.norm": "group", "learning.server_momentum": 0.7},
    "momentum9": {"model.norm": "group", "learning.server_momentum": 0.9},
    "rate": {"model.norm": "group", "learning.l2u.mid_rate": 0.1},
    "all": {
        "model.norm": "group",
        "learning.batch_size": 16,
        "learning.server_momentum": 0.7,
        "learning.l2u.mid_rate": 0.1,
    },
    "all-batchnorm": {
        "model.norm": "batch",
        "learning.batch_size": 16,
        "learning.server_momentum": 0.7,
        "learning.l2u.mid_rate": 0.1,
    },
    "all-half-generator": {
        "model.norm": "group",
        "learning.batch_size": 16,
        "learning.server_momentum": 0.7,
        "learning.l2u.mid_rate": 0.1,
        "learning.l2u.generator_epochs": 0.5,
    },
    "supervised": {"model.norm": "group", "learning.objective": "supervised"},
    "supervised-batchnorm": {"model.norm": "batch", "learning.objective": "supervised"},
    "supervised-all": {
        "model.norm": "group",
        "learning.objective": "supervised",
        "learning.batch_size": 16,
        "learning.server_momentum": 0.7,
        "learning.supervised.rate": 0.1,
    },
}


class Curve(Observer):
    """Collects validation accuracy and time, and prints them as they come."""

    def __init__(self) -> None:
        self.accuracy: list[float] = []

    def on_round(self, record: dict[str, Any]) -> None:
        self.accuracy.append(round(record["validation_accuracy"], 4))
        print(
            f"    {record['round']:3d}  {100 * self.accuracy[-1]:5.1f} %  {record['seconds']:.1f} s"
        )


def key(config: Config) -> str:
    """The address of a result."""
    where = {"data": {"path", "cache"}}
    text = config.model_dump_json(exclude=where)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def measure(config: Config) -> dict[str, Any]:
    curve = Curve()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        summary = learn(config, Path(folder) / "run", observer=curve).summary()
    accuracy = summary["accuracy"]
    validation = accuracy["validation"]
    return {
        "rounds": summary["rounds"],
        "seconds": round(time.perf_counter() - start, 1),
        "validation": validation["all"]["accuracy"],
        "validation_causal": validation["all"]["causal_accuracy"],
        "train": accuracy["train"]["all"]["accuracy"],
        "domains": {d: s["accuracy"] for d, s in validation["domains"].items()},
        "curve": curve.accuracy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", choices=BASE)
    parser.add_argument("--path", help="folder or zip of the data set")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", help="comma-separated variants; default: all")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="for all variants"
    )
    parser.add_argument(
        "--results", type=Path, help="default: benchmarks/results/recipes-DATA.json"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    file = options.results or Path(__file__).parent / f"results/recipes-{options.data}.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    for name in options.only.split(",") if options.only else VARIANTS:
        values = BASE[options.data] | VARIANTS[name]
        values |= {"learning.rounds": options.rounds, "learning.patience": 0}
        values |= {"data.path": options.path} if options.path else {}
        texts = [f"{k}={json.dumps(v)}" for k, v in values.items()] + options.set
        config = load_config(None, texts)
        address = key(config)
        if address not in results:
            print(f"{name}: {VARIANTS[name]} {' '.join(options.set)}", flush=True)
            results[address] = {"variant": name, "set": options.set, **measure(config)}
            file.parent.mkdir(exist_ok=True)
            write_text(file, json.dumps(results, indent=1) + "\n")
    ranked = sorted(results.values(), key=lambda result: -result["validation"])
    if options.json:
        print(json.dumps(ranked, indent=2))
        return
    print(
        f"{'variant':22} {'rounds':>6} {'seconds':>8} {'valid. %':>8} {'z_K %':>6} {'train %':>7}"
    )
    for r in ranked:
        numbers = [100 * r[k] for k in ("validation", "validation_causal", "train")]
        shown = " ".join(f"{n:7.1f}" for n in numbers)
        print(
            f"{r['variant']:22} {r['rounds']:6d} {r['seconds']:8.1f} {shown}  {' '.join(r['set'])}"
        )


if __name__ == "__main__":
    main()
