"""`foul erase list`."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.erasure.clock import today
from foul.erasure.records import Request
from foul.erasure.store import Store


def list_requests(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    pending: Annotated[bool, typer.Option("--pending", help="Only those still to serve.")] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Requests with their states and due dates; overdue ones in red."""
    found = [
        (run, asked)
        for run in runs
        for asked in Store.read(run).state().requests.values()
        if asked.open or not pending
    ]
    if as_json:
        print_json(
            [
                {"run": str(run), **asked.to_dict(), "overdue": asked.overdue(today())}
                for run, asked in found
            ]
        )
        return
    rows = [_row(run if len(runs) > 1 else None, asked) for run, asked in found]
    columns = ["request", "whom", "state", "received", "due", "note"]
    title = "1 request" if len(rows) == 1 else f"{len(rows)} requests"
    print_table(title, [*(["run"] if len(runs) > 1 else []), *columns], rows)


def _row(run: Path | None, asked: Request) -> list[Any]:
    days = (date.fromisoformat(asked.due) - today()).days
    due = asked.due
    if asked.open:
        count = "1 day" if abs(days) == 1 else f"{abs(days)} days"
        due += f" ({count} left)" if days >= 0 else f" ({count} overdue)"
    style = "bold red" if asked.overdue(today()) else ""
    cells = [asked.text, asked.state, asked.received[:10], Text(due, style=style), asked.note]
    return [*([run] if run else []), asked.id, *cells]
