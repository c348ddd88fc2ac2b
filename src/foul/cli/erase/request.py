"""`foul erase request`."""

from datetime import date
from typing import Annotated

import typer

from foul.cli.erase.arguments import Run
from foul.cli.output import JSON_OPTION, print_json
from foul.erasure.requests import file_request
from foul.erasure.store import Store
from foul.errors import UserError


def request(
    run: Run,
    client: Annotated[
        list[str] | None, typer.Option("--client", "-c", help="A client's id; repeat for several.")
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option("--domain", "-d", help="All clients of this domain.")
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Why. It stays in the ledger: name nobody.")
    ] = "",
    due: Annotated[
        str | None, typer.Option("--due", help="YYYY-MM-DD; default: in a month.")
    ] = None,
    departed: Annotated[
        bool,
        typer.Option("--departed", help="They are out of reach: nothing can be asked of them."),
    ] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """File a request to erase clients, or all clients of a domain.

    It can be filed at any time, also while another request is being served.

    Examples:

      foul erase request RUN --client plain-2

      foul erase request RUN --domain textured --reason "hospital left" --due 2027-01-31
    """
    if bool(client) == bool(domain):
        raise UserError("Say whom to erase", "Either --client ID or --domain NAME.")
    text = f"client:{','.join(client)}" if client else f"domain:{','.join(domain or [])}"
    filed = file_request(Store.open(run), text, reason, _day(due), departed)
    if as_json:
        print_json(filed.to_dict())
        return
    typer.echo(f"{filed.id}: erase {', '.join(filed.clients)}, due {filed.due}")
    typer.echo(f"Next: foul erase plan {run} {filed.number}")


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"'{text}' is no date", "Write it as YYYY-MM-DD.") from None
