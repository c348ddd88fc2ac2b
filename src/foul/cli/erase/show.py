"""`foul erase show`."""

from typing import Annotated

import typer

from foul.cli.erase.arguments import Number, Run
from foul.cli.erase.outcome import show_job
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.erasure.requests import find_request, parse_number
from foul.erasure.store import Store


def show(run: Run, number: Number, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Everything about one request: its states, its job, its evidence, what was purged."""
    state = Store.read(run).state()
    asked = find_request(state, parse_number(number))
    job = state.jobs.get(asked.job or 0)
    if as_json:
        print_json({**asked.to_dict(), "job": job.to_dict() if job else None})
        return
    print_table(
        f"{asked.id}: erase {', '.join(asked.clients)}",
        ["state", "since", "note"],
        [list(step) for step in asked.history],
    )
    typer.echo(f"Asked: {asked.text}. Due {asked.due}. Reason: {asked.reason or 'none given'}.")
    if job:
        show_job(state, job, asked)
