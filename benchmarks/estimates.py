"""How the line of FOUL's estimate was chosen: what Retrain has over the stand-in, in many cases.

    python benchmarks/estimates.py RUN... [--json]

A run needs `foul` and `retrain` for whole domains (`foul run ... --methods foul,retrain`). FOUL's
rounds tell how its stand-in did on the forgotten domain and on held-out retain data, and how the
learned model did there; Retrain's FA is what the estimate should have been. Printed are, in logits,
what Retrain has over the stand-in on the forgotten domain and what the learned model has over it on
retain data, and how far several lines through these miss Retrain's FA, in points. As in FOUL, no
estimate is below chance.
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from foul.cli.output import print_table
from foul.errors import UserError
from foul.runs.folder import RunFolder
from foul.runs.results import read_results
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.standin import at_least_chance

DEFAULT = FoulOptions()
LINES: dict[str, Callable[[float], float]] = {
    f"{DEFAULT.offset:g} + {DEFAULT.slope:g} x (the default)": lambda x: (
        DEFAULT.offset + DEFAULT.slope * x
    ),
    "0.75 x": lambda x: 0.75 * x,
    "0.9": lambda x: 0.9,
}


@dataclass(frozen=True)
class Case:
    """A forgotten domain: accuracies as fractions."""

    data: str
    request: str
    seed: int
    classes: int
    standin_forget: float
    standin_retain: float
    learned_retain: float
    retrain: float

    @property
    def needed(self) -> float:
        """What the estimate must add to the stand-in's logit."""
        return logit(self.retrain) - logit(self.standin_forget)

    @property
    def advantage(self) -> float:
        """What the learned model has over the stand-in on retain data."""
        return logit(self.learned_retain) - logit(self.standin_retain)

    def error(self, line: Callable[[float], float]) -> float:
        """How far the estimate by this line is from Retrain's FA, in points."""
        estimate = at_least_chance(logit(self.standin_forget) + line(self.advantage), self.classes)
        return 100 * abs(estimate - self.retrain)


def logit(share: float) -> float:
    return math.log(share / (1 - share))


def cases(path: Path) -> list[Case]:
    """Every whole domain that a run has forgotten by FOUL and by Retrain."""
    run = RunFolder.open(path)
    results = read_results(run.results_file)
    retrain = {r["forget"]: r["fa"] for r in results if r["method"] == "retrain"}
    found = []
    for result in results:
        told = [record["standin"] for record in result.get("records", ()) if "standin" in record]
        if result["method"] != "foul" or not told or result["forget"] not in retrain:
            continue
        domain = result["forget"].removeprefix("domain:")
        found.append(
            Case(
                run.config().data.name,
                result["forget"],
                run.config().seed,
                len(run.facts()["classes"]),
                told[-1][domain],
                told[-1]["retain"],
                result["records"][0]["retain_validation"],
                retrain[result["forget"]],
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0] if __doc__ else "")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    try:
        found = [case for path in arguments.runs for case in cases(path)]
    except UserError as error:
        parser.error(str(error))
    if not found:
        parser.error(
            "no run has forgotten a whole domain by foul and by retrain; make one with "
            "`foul run ... --methods foul,retrain --forget domain:NAME`"
        )
    lines = {name: [case.error(line) for case in found] for name, line in LINES.items()}
    if arguments.json:
        rows: list[dict[str, Any]] = [
            asdict(case) | {"needed": case.needed, "advantage": case.advantage} for case in found
        ]
        print(json.dumps({"cases": rows, "mean_error": {n: mean(e) for n, e in lines.items()}}))
        return
    print_table(
        f"{len(found)} cases, in logits; needed: median {median(c.needed for c in found):.2f}",
        ["data", "request", "seed", "advantage", "needed"],
        [[c.data, c.request, c.seed, f"{c.advantage:.2f}", f"{c.needed:.2f}"] for c in found],
    )
    sets = sorted({case.data for case in found})
    print_table(
        "Mean error of the estimate in points, if it adds this to the stand-in's logit",
        ["x: the advantage", "all", *sets],
        [
            [name, f"{mean(errors):.1f}"]
            + [
                f"{mean(e for e, c in zip(errors, found, strict=True) if c.data == s):.1f}"
                for s in sets
            ]
            for name, errors in lines.items()
        ],
    )


if __name__ == "__main__":
    main()
