"""What was done for a request, and what was measured."""

from typing import Any

import typer
from rich.text import Text

from foul.cli.output import decimal, percent, print_table
from foul.erasure.evidence import Figures
from foul.erasure.records import Job, Request
from foul.erasure.state import State


def show_job(state: State, job: Job, asked: Request) -> None:
    """What was done for a request, and what was measured."""
    base = state.versions[job.base]
    told = job.evidence.get(str(asked.number))
    if told:
        show_figures(f"{asked.id} by {job.method}", told["before"], told["after"], told["checks"])
    if told and told.get("before_passed") and not job.exact:
        typer.echo("The model before met these limits, too: they show no forgetting by themselves.")
    if job.phase == "failed":
        typer.echo(f"{asked.id} failed: {job.note}. In service: version {base.number} as before.")
    elif job.phase == "done" and job.version is not None:
        made = state.versions[job.version]
        count = sum(item["how"] in ("delete", "replace") for item in job.purge["items"])
        typer.echo(
            f"{asked.id} done: version {made.number} ({made.hash[:12]}) is in service instead of "
            f"{base.number} ({base.hash[:12]}); {count} files removed, nothing of them found; "
            f"receipt {', '.join(map(str, asked.receipts))} in erasure/receipts."
        )
    else:
        typer.echo(f"{asked.id}: job {job.number} is {job.phase}; `foul erase run` goes on.")


_SHOWN = {
    "fa": "accuracy on forgotten training data %",
    "forget_test": "accuracy on forgotten test data %",
    "ra": "accuracy on retained training data %",
    "retain_test": "accuracy on retained test data %",
    "ta": "accuracy on all test data %",
    "mia_auc": "AUC of the loss attack (0.5 is chance)",
    "mia_low": "  lower end of its 95 % interval",
    "mia_high": "  upper end",
}


def show_figures(
    title: str,
    before: Figures,
    after: Figures,
    checks: list[dict[str, Any]],
    retrain: Figures | None = None,
) -> None:
    """Figures before and after, and the policy's thresholds."""

    def cells(key: str) -> list[str]:
        told = decimal if key.startswith("mia") else percent
        others = [] if retrain is None else [told(retrain[key])]
        return [told(before[key]), told(after[key]), *others]

    columns = ["", "before", "after", *([] if retrain is None else ["retrained"])]
    print_table(title, columns, [[name, *cells(key)] for key, name in _SHOWN.items()])
    print_table(
        "Policy",
        ["check", "value", "limit", "passed"],
        [
            [
                check["what"],
                decimal(check["value"]),
                f"at most {check['at_most']}"
                if check["at_most"] is not None
                else f"at least {check['at_least']}",
                "yes" if check["passed"] else Text("no", style="bold red"),
            ]
            for check in checks
        ],
    )
