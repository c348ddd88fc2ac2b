"""`foul erase run`."""

from typing import Annotated

import typer

from foul.cli.arguments import Quiet
from foul.cli.erase.arguments import Run
from foul.cli.erase.outcome import show_job
from foul.cli.output import JSON_OPTION, print_json
from foul.cli.remote import handed_over, on_machine, shown
from foul.erasure.requests import parse_number
from foul.erasure.run import run as serve_requests
from foul.erasure.store import Store


def run_requests(
    run: Run,
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REQUEST|KEY=VALUE]...",
            help="Requests to serve together (default: all that wait), options of the method, and"
            " device, engine or flower.KEY.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Default: what the plan recommends.")
    ] = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Serve requests: unlearn, judge the evidence, replace the model, purge, give receipts.

    Killed at any moment, the same command goes on. Without REQUEST all that waits is served,
    together where that is cheaper. If the evidence misses the policy, the request fails (exit code
    2) and the old model stays in service; run it again with another method.

    Examples:

      foul erase run RUN

      foul erase run RUN 3 --method retrain

      foul erase run RUN 4 5 rounds=10
    """
    texts = [text for text in wanted or [] if "=" in text]
    numbers = [parse_number(text) for text in wanted or [] if "=" not in text]
    store = Store.open(run)
    config, options = on_machine(store.folder, texts)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        jobs = serve_requests(store, numbers, method, options, display, config)
    state = store.state()
    if as_json:
        print_json([job.to_dict() for job in jobs])
    elif not jobs:
        typer.echo("No request waits to be served.")
    for job in jobs:
        for number in job.requests if not as_json else ():
            show_job(state, job, state.requests[number])
    if any(job.phase == "failed" for job in jobs):
        raise typer.Exit(2)
