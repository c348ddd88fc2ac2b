"""`foul erase verify`."""

from typing import Annotated

import typer

from foul.cli.arguments import Quiet
from foul.cli.erase.arguments import Machine, Number, Run, machine_config
from foul.cli.erase.outcome import show_figures
from foul.cli.output import JSON_OPTION, print_json
from foul.cli.remote import handed_over, shown
from foul.erasure.requests import parse_number
from foul.erasure.store import Store
from foul.erasure.verify import verify as verify_request


def verify(
    run: Run,
    number: Number,
    machine: Machine = None,
    with_retrain: Annotated[
        bool,
        typer.Option("--with-retrain", help="Also retrain without them, to compare (slow)."),
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Measure the model in service once more and say whether it meets the policy.

    Exit code 2 if it does not.
    """
    store = Store.open(run)
    config = machine_config(store, machine)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        told = verify_request(store, parse_number(number), with_retrain, display, config)
    if as_json:
        print_json(told)
    else:
        title = f"R-{told['request']:04d} in version {told['version']}"
        show_figures(title, told["before"], told["after"], told["checks"], told.get("retrain"))
        if not told["known"]:
            typer.echo("The model in service is not the one that the ledger knows.")
        typer.echo("The policy is met." if told["passed"] else "The policy is not met.")
    if not told["passed"]:
        raise typer.Exit(2)
