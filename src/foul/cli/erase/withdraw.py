"""`foul erase withdraw`."""

from typing import Annotated

import typer

from foul.cli.erase.arguments import Number, Run
from foul.cli.output import JSON_OPTION, print_told
from foul.erasure.issuing import issue_missing
from foul.erasure.requests import parse_number
from foul.erasure.requests import withdraw as withdraw_request
from foul.erasure.store import Store


def withdraw(
    run: Run,
    number: Number,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why.")] = "",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Take a request back that nobody has begun to serve, or that has failed."""
    store = Store.read(run)
    asked = withdraw_request(store, parse_number(number), reason)
    issue_missing(store, store.state())
    print_told(asked.to_dict(), f"{asked.id} is withdrawn.", as_json)
