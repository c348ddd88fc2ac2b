"""`foul evaluate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from foul.cli.arguments import Quiet, names
from foul.cli.output import JSON_OPTION, decimal, percent, print_json, print_table
from foul.cli.remote import handed_over, on_machine, shown
from foul.errors import UserError
from foul.evaluation.metrics import METRICS, Metric
from foul.evaluation.stage import DEFAULT_PARTS, PARTS, evaluate_run
from foul.experiments.store import slim
from foul.runs.folder import RunFolder
from foul.unlearning.saved import label_of


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder with results.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Of the machine: device, engine, flower.KEY."
        ),
    ] = None,
    forget: Annotated[
        str | None, typer.Option("--forget", "-f", help="Only this request; default: all.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "-m", help="Only these methods, with commas.")
    ] = None,
    parts: Annotated[
        str, typer.Option("--parts", help=f"What to measure, of {', '.join(PARTS)}.")
    ] = ",".join(DEFAULT_PARTS),
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Measure a run's models again, from their checkpoints.

    forgetting: accuracy per client and domain, membership attacks, linear probes, backdoor.
    kl: how differently a model answers than Retrain (and, if `retrain-again` ran, how differently
    two Retrains answer). pictures: reconstructions and latents of the learned model.
    relearn: rounds until the forgotten is known again once its clients rejoin (trains; slower).

    Examples:

      foul evaluate runs/demo

      foul evaluate runs/demo --parts relearn --methods foul,retrain
    """
    folder = RunFolder.open(run)
    config, strange = on_machine(folder, overrides or [])
    if strange:
        raise UserError(f"'{strange[0]}' is no setting of the machine", "Use device or engine.")
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        results = evaluate_run(
            run, forget, names(methods), names(parts) or (), display, config=config
        )
    if not results:
        raise UserError(
            f"No model of {run} was measured: its figures came from a store, or none was named",
            "Name one that ran (--methods), or run it here: "
            f"foul unlearn {run} --forget domain:NAME --method METHOD",
        )
    if as_json:
        print_json(
            [slim(r) | {"evaluation": _measured(folder, r)} for r in results],
        )
        return
    for request in dict.fromkeys(result["forget"] for result in results):
        show_evaluation(folder, [r for r in results if r["forget"] == request])


_SHOWN = (
    *("fa", "ra", "ta", "forget_test", "retain_test", "mia_auc", "mia_accuracy", "mia_tpr_1"),
    *("k_probe", "v_probe", "kl_forget", "kl_retain", "kl_test", "relearn", "backdoor"),
)


def show_evaluation(folder: RunFolder, results: list[dict[str, Any]]) -> None:
    """What was measured of the methods that served one request, a column each; then the attacks."""
    methods = [result["method"] for result in results]
    rows = [
        [_title(METRICS[key]), *(_shown(METRICS[key], result.get(key)) for result in results)]
        for key in _SHOWN
        if any(result.get(key) is not None for result in results)
    ]
    print_table(f"{folder.path}: forgetting {results[0]['forget']}", ["", *methods], rows)
    measured = [_measured(folder, result) for result in results]
    attacks = [about.get("attacks", {}) for about in measured]
    rows = [
        [name, *(_interval(found.get(name)) for found in attacks)]
        for name in dict.fromkeys(name for found in attacks for name in found)
    ]
    if rows:
        print_table("Membership attacks, refitted on each model: AUC (95 %)", ["", *methods], rows)
    if any("kl" in about and about["kl"] is None for about in measured):
        request = results[0]["forget"]
        typer.echo(
            "No KL to Retrain: it has not run for this request. "
            f"Run it: foul unlearn {folder.path} --forget {request} --method retrain"
        )


def _title(metric: Metric) -> str:
    return f"{metric.title} {metric.unit}".strip()


def _shown(metric: Metric, value: float | None) -> str:
    if metric.unit == "rounds":
        return "-" if value is None else str(value)
    return percent(value) if metric.unit == "%" else decimal(value)


def _interval(attack: dict[str, Any] | None) -> str:
    if attack is None:
        return "-"
    return f"{attack['auc']:.3f} ({attack['auc_low']:.3f} to {attack['auc_high']:.3f})"


def _measured(folder: RunFolder, result: dict[str, Any]) -> dict[str, Any]:
    return folder.load_evaluation(label_of(result["method"], result["forget"]))
