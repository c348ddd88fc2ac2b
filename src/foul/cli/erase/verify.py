"""`foul erase verify`."""

from typing import Annotated, Any

import typer

from foul.cli.arguments import Quiet
from foul.cli.erase.arguments import Machine, Number, Run, machine_config
from foul.cli.erase.outcome import show_figures
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.cli.remote import handed_over, shown
from foul.erasure.receipts.page import cost_lines
from foul.erasure.requests import parse_number
from foul.erasure.store import Store
from foul.erasure.verify import verify as verify_request


def verify(
    run: Run,
    number: Number,
    machine: Machine = None,
    retrain: Annotated[
        bool,
        typer.Option("--retrain", help="Also retrain without them, to compare (slow)."),
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Measure the model in service once more and say whether it meets the policy.

    The outcome is an entry in the ledger with a signed receipt. With --retrain it tells the figures
    and the costs of a model that never saw the data beside those of the erasure; that model is not
    kept. `foul erase plan` says how long retraining takes; killed, the same command goes on.

    Exit code 2 if the policy is not met.

    Examples:

      foul erase verify RUN 3

      foul erase verify RUN 3 --retrain
    """
    store = Store.read(run)
    config = machine_config(store, machine)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        told = verify_request(store, parse_number(number), retrain, display, config)
    if as_json:
        print_json(told)
    else:
        _show(store, told)
    if not told["passed"]:
        raise typer.Exit(2)


def _show(store: Store, told: dict[str, Any]) -> None:
    title = f"R-{told['request']:04d} in version {told['version']}"
    show_figures(title, told["before"], told["after"], told["checks"], told.get("retrain"))
    if "retrain_costs" in told:
        state = store.state()
        job = state.jobs[state.requests[told["request"]].job or 0]
        retraining = dict(cost_lines(told["retrain_costs"]))
        rows = [[name, own, retraining.get(name, "-")] for name, own in cost_lines(job.result)]
        print_table("Costs", ["", f"erasure by {job.method}", "retraining"], rows)
    if not told["known"]:
        typer.echo("The model in service is not the one that the ledger knows.")
    typer.echo("The policy is met." if told["passed"] else "The policy is not met.")
    typer.echo(f"Receipt {told['receipt']} in erasure/receipts.")
