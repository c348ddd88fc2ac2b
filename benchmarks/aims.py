"""What FOUL was to reach, and what it has reached, from the stored results.

    python benchmarks/aims.py [--method NAME] [--json]

Reads `benchmarks/results/unlearning-*.json`, which `foul run ... --store` fills. Only results of
today's defaults count, seed 0; each figure is the mean over the requests, FOUL against Retrain,
accuracies in points.
`--method retrain-again` holds a second Retrain, from other first weights, to the same aims: nobody
can come nearer to a Retrain than another one does, but by chance.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from foul.cli.output import print_table
from foul.config import load_config
from foul.experiments.store import key_of_request
from foul.unlearning.methods import METHODS

RESULTS = Path(__file__).parent / "results"
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "digits": ("digits", {}),
    "digits until patience": ("digits", {"learning.rounds": 40}),
    "digits28": ("digits28", {"learning.rounds": 20}),
    "digits28 until patience": ("digits28", {}),
    "pacs": ("pacs", {}),
    "pacs until patience": ("pacs", {"learning.rounds": 60}),
}
"""Which data was learned, and with which settings."""
HELP = "whom to hold to them (default: foul); see `foul methods`"
NEAR = 0.01
"""An AUC this near to Retrain's is as good as inside its interval."""

Result = Mapping[str, Any]
Pair = tuple[Result, Result]
"""A method's result of a request, and Retrain's."""


def pairs(data: str, settings: dict[str, Any], kind: str, method: str) -> list[Pair]:
    """The stored results of a method for requests of this kind."""
    known = json.loads((RESULTS / f"unlearning-{data}.json").read_text(encoding="utf-8"))
    config = load_config(data, settings)
    requests = sorted({r["forget"] for r in known.values() if r["forget"].startswith(kind)})
    keys = [[key_of_request(config, text, m) for m in (method, "retrain")] for text in requests]
    return [(known[own], known[retrain]) for own, retrain in keys if {own, retrain} <= set(known)]


def inside(foul: Result, retrain: Result) -> bool:
    """Whether the attack finds no more, and no less, than on Retrain."""
    low, auc, high = retrain["mia_low"], foul["mia_auc"], retrain["mia_high"]
    return bool(abs(auc - retrain["mia_auc"]) <= NEAR or low <= auc <= high)


def reached(found: Sequence[Pair]) -> dict[str, str]:
    """A row of the table, by aim."""

    def gap(key: str) -> list[float]:
        return [100 * (foul[key] - retrain[key]) for foul, retrain in found]

    def short(key: str) -> str:
        return f"{mean(max(0.0, -difference) for difference in gap(key)):.2f}"

    def share(key: str) -> str:
        return f"{mean(100 * foul[key] / retrain[key] for foul, retrain in found):.1f}"

    return {
        "requests": str(len(found)),
        "abs. FA gap, at most 3": f"{mean(map(abs, gap('fa'))):.2f}",
        "RA short, at most 1": short("ra"),
        "TA short, at most 1": short("ta"),
        "attacks as on Retrain, all": str(sum(inside(*pair) for pair in found)),
        "rounds, at most 10": str(max(foul["rounds"] for foul, _ in found)),
        "bytes in % of Retrain's, at most 10": share("bytes"),
        "FLOPs in %, at most 10": share("flops"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0] if __doc__ else "")
    parser.add_argument("--method", choices=METHODS, default="foul", metavar="NAME", help=HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    sets = {
        f"{name}, {kind}s": reached(found)
        for name, (data, settings) in SETS.items()
        for kind in ("domain", "client")
        if (found := pairs(data, settings, kind, arguments.method))
    }
    if not sets:
        parser.error(f"no results of {arguments.method} are stored; `foul run ... --store` does")
    if arguments.json:
        print(json.dumps(sets, indent=2))
        return
    rows = [[name, *aims.values()] for name, aims in sets.items()]
    title = f"{arguments.method} against Retrain, seed 0"
    print_table(title, ["requests for", *next(iter(sets.values()))], rows)


if __name__ == "__main__":
    main()
