"""What each choice of FOUL contributes: one change at a time, on one learned model.

    foul run digits --out runs/ablation --methods none,retrain --forget domain:plain ...
    python benchmarks/ablation.py runs/ablation --results benchmarks/results/ablation-digits.json

The run must have been retrained for every request, so that distances can be told. Results are kept
by a hash of what made them: stopped, the same command goes on.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

from foul.cli.output import print_table
from foul.evaluation.gaps import distance, gaps
from foul.experiments.store import ResultStore, key_of_request
from foul.runs.folder import RunFolder
from foul.runs.results import read_results
from foul.unlearning.stage import unlearn

CHANGES: dict[str, list[str]] = {
    "target known (Retrain's FA)": ["target=RETRAIN"],
    "more and longer rounds": ["rounds=7", "min_steps=6", "probe_share=0"],
    "forget clients move all of the scope": ["aside=0"],
    "the bounded loss, all of the scope": ["forget=bounded"],
    "negated deltas": ["forget=negated"],
    "no levelling": ["level=0"],
    "forget clients weigh 1": ["beta=1"],
    "forget clients start with the round": ["forget_from=round"],
    "always the full radius": ["control=false", "delta=1"],
    "no ramp": ["ramp=0"],
    "all of V travels": ["still=nothing"],
    "scope V alone": ["scope=['V']"],
    "scope head alone": ["scope=['head']"],
    "deltas as they are": ["normalise=none"],
    "radius of the anchor": ["radius_of=anchor"],
    "joint simplex": ["simplex=joint"],
    "32 bits both ways": ["precision=float32"],
    "clients count by samples": ["fairness=0"],
    "stage (1)": ["matching=false"],
}
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "foul": ("foul", []),
    **{name: ("foul", texts) for name, texts in CHANGES.items()},
    "foul-paper": ("foul-paper", []),
    "foul-printed": ("foul-printed", []),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0] if __doc__ else "")
    parser.add_argument("run", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--only", type=int, help="the first so many variants")
    parser.add_argument("--forget", action="append", help="only this request; may be repeated")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    run, store = RunFolder.open(arguments.run), ResultStore(arguments.results)
    retrained = {
        r["forget"]: r
        for r in read_results(run.results_file)
        if r["method"] == "retrain" and (not arguments.forget or r["forget"] in arguments.forget)
    }
    with tempfile.TemporaryDirectory() as scratch:
        # The variants must not overwrite the run's own results.
        copy = Path(shutil.copytree(run.path, Path(scratch) / "run"))
        table = [_row(copy, name, retrained, store) for name in list(VARIANTS)[: arguments.only]]
    if arguments.json:
        print(json.dumps(table, indent=2))
        return
    keys = list(table[0])
    print_table(
        f"Ablation, mean over {', '.join(retrained)}",
        keys,
        [[_shown(row[key]) for key in keys] for row in table],
    )


def _row(
    run: Path, name: str, retrained: dict[str, dict[str, Any]], store: ResultStore
) -> dict[str, Any]:
    """Means over the requests of one variant."""
    pairs = []
    for request, reference in retrained.items():
        method, texts = VARIANTS[name]
        texts = [text.replace("RETRAIN", str(reference["fa"])) for text in texts]
        key = key_of_request(RunFolder.open(run).config(), request, method, texts)
        result = store.get(key) or store.put(key, unlearn(run, request, method, texts))
        pairs.append((result, reference))
    told = [gaps(result, reference) for result, reference in pairs]
    return {
        "variant": name,
        "|FA gap|": mean(abs(gap["fa_gap"]) for gap in told),
        "RA gap": mean(gap["ra_gap"] for gap in told),
        "TA gap": mean(gap["ta_gap"] for gap in told),
        "|AUC gap|": mean(abs(gap["mia_auc_gap"]) for gap in told),
        "off by": mean(distance(*pair) for pair in pairs),
        "rounds": mean(result["rounds"] for result, _ in pairs),
        "bytes": mean(gap["bytes_share"] for gap in told),
        "FLOPs": mean(gap["flops_share"] for gap in told),
    }


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}"


if __name__ == "__main__":
    main()
