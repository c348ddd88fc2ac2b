"""`foul unlearn`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.arguments import Quiet
from foul.cli.output import JSON_OPTION, decimal, percent, print_json, print_table, size
from foul.cli.remote import handed_over, on_machine, shown
from foul.runs.folder import RunFolder
from foul.runs.results import read_results
from foul.unlearning.stage import unlearn as run_unlearning


def unlearn(
    run: Annotated[Path, typer.Argument(help="A run folder that has learned.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Options of the method; device, engine, flower.KEY."
        ),
    ] = None,
    forget: Annotated[
        str,
        typer.Option("--forget", "-f", help="domain:NAME or client:ID; several with commas."),
    ] = "",
    method: Annotated[
        str, typer.Option("--method", "-m", help="A method of `foul methods`.")
    ] = "foul",
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Make a learned model forget a domain or some clients.

    The learned model stays as it is; the new one is added to the run's models. Interrupted, the
    same command continues where it stopped.

    Examples:

      foul unlearn runs/first --forget domain:textured

      foul unlearn runs/first --forget client:plain-2 --method retrain
    """
    config, options = on_machine(RunFolder.open(run), overrides or [])
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        result = run_unlearning(run, forget, method, options, display, config=config)
    if as_json:
        print_json(result)
    else:
        show_results(RunFolder.open(run), result["forget"])
        typer.echo(f"{method} stopped: {result['stopped']}. Model: {run / result['model']}")


def show_results(folder: RunFolder, forget: str) -> None:
    """The figures of all methods that served this request."""
    rows = [
        [
            r["method"],
            *(percent(r[key]) for key in ("fa", "ra", "ta", "forget_test")),
            decimal(r["mia_auc"]),
            r["rounds"],
            size(r["bytes"]),
            f"{r['flops'] / 1e9:.1f}",
        ]
        for r in read_results(folder.results_file)
        if r["forget"] == forget
    ]
    columns = ["method", "FA %", "RA %", "TA %", "forget test %", "MIA AUC", "rounds"]
    columns += ["bytes", "GFLOP"]
    print_table(f"{folder.path}: forgetting {forget}", columns, rows)
