"""How the published methods' defaults were found: a small search, judged on validation data alone.

    foul run digits federation.history=domains --methods none,retrain --forget domain:inverted \
        --out runs/search
    python benchmarks/method_search.py runs/search --forget domain:inverted \
        --results benchmarks/results/method-search-digits.json

A variant's score is how far its model is from Retrain on the clients' validation samples: |gap| of
the forget clients' accuracy plus the shortfall of the retain clients', in points. Test samples and
the attack are not looked at. Results are kept by a hash of what made them: stopped, the same
command goes on.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from foul.cli.output import print_table
from foul.evaluation.accuracy import evaluate
from foul.experiments.store import ResultStore, key_of_request
from foul.federation.build import Setting, opened
from foul.federation.federation import QuorumError
from foul.runs.folder import RunFolder
from foul.unlearning.request import ForgetRequest
from foul.unlearning.saved import label_of
from foul.unlearning.stage import unlearn

GRID: dict[str, list[list[str]]] = {
    "not": [["rate=0.5", "rounds=5"], ["rate=1", "rounds=5"], ["rate=1", "rounds=10"]],
    "fedosd": [
        ["rate=0.03", "recovery_rate=0.02"],
        ["rate=0.05", "recovery_rate=0.02"],
        ["rate=0.05", "recovery_rate=0.05"],
        ["rate=0.1", "recovery_rate=0.05"],
    ],
    "mode": [
        ["keep=0.8", "rate=0.05"],
        ["keep=0.95", "rate=0.02"],
        ["keep=0.95", "rate=0.05"],
    ],
    "fedrecovery": [
        [f"scale={scale}", f"sigma={sigma}"] for scale in (0.3, 1) for sigma in (0, 0.01, 0.02)
    ],
    "fedcdp": [
        ["ratio=0.05", "cap=0.2", "recovery_rounds=5"],
        ["ratio=0.1", "cap=0.2", "recovery_rounds=5"],
        ["ratio=0.1", "cap=0.5", "recovery_rounds=5"],
        ["ratio=0.1", "cap=0.5", "recovery_rounds=10"],
    ],
    "fused": [["adapter_rate=0.3"], ["adapter_rate=1"]],
    "fused-lora": [["adapter_rate=0.1"], ["adapter_rate=0.3"], ["adapter_rate=1"]],
    "ffmu-adapted": [["rate=0.0025"], ["rate=0.005"], ["rate=0.005", "share=0.5"]],
    "fats": [["rate=0.05"], ["rate=0.1"]],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0] if __doc__ else "")
    parser.add_argument("run", type=Path, help="a run with federation.history and Retrain's model")
    parser.add_argument("--forget", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--methods", help="only these, with commas")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    store = ResultStore(arguments.results)
    wanted = arguments.methods.split(",") if arguments.methods else list(GRID)
    with tempfile.TemporaryDirectory() as scratch:
        copy = RunFolder.open(Path(shutil.copytree(arguments.run, Path(scratch) / "run")))
        with opened(copy.config(), features=copy.path / "features") as setting:
            reference = _validation(copy, setting, arguments.forget, "retrain")
            table = [
                _tried(copy, setting, arguments.forget, method, texts, reference, store)
                for method in wanted
                for texts in GRID[method]
            ]
    if arguments.json:
        print(json.dumps({"retrain": reference, "tried": table}, indent=2))
        return
    columns = ["method", "options", "forget", "retain", "off by"]
    rows = [[_shown(row.get(column, "failed")) for column in columns] for row in table]
    shown = f"{reference['forget']:.1f} / {reference['retain']:.1f}"
    print_table(f"Validation accuracy, %; Retrain {shown}", columns, rows)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.1f}"


def _tried(
    run: RunFolder,
    setting: Setting,
    forget: str,
    method: str,
    texts: list[str],
    reference: dict[str, float],
    store: ResultStore,
) -> dict[str, Any]:
    key = key_of_request(run.config(), forget, method, texts)
    known = store.get(key)
    if known is None:
        try:
            unlearn(run.path, forget, method, texts, setting=setting)
            figures: dict[str, Any] = _validation(run, setting, forget, method)
        except QuorumError as error:
            # Clients' updates are refused when they are not finite: that setting diverges.
            figures = {"failed": str(error)}
        known = store.put(key, figures)
    tried = {"method": method, "options": " ".join(texts), **known}
    if "failed" in known:
        return tried
    lost = abs(known["forget"] - reference["forget"])
    lost += max(0.0, reference["retain"] - known["retain"])
    return {**tried, "off by": lost}


def _validation(run: RunFolder, setting: Setting, forget: str, method: str) -> dict[str, float]:
    """Accuracy of a model on either side's validation samples, in percent."""
    model, _ = run.load_model(label_of(method, forget))
    request = ForgetRequest.parse(forget, setting.federation.clients)
    scores = evaluate(setting.federation, model, splits=("validation",))
    sides = {"forget": request.forget, "retain": request.retain}
    totals = {
        side: scores.total("validation", [client.id for client in clients])
        for side, clients in sides.items()
    }
    return {side: 100 * total.correct / max(1, total.samples) for side, total in totals.items()}


if __name__ == "__main__":
    main()
