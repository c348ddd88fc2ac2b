"""Printing figures: a table for people, JSON for programs."""

import json
import os
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from foul.report.units import size as size

FILE_WIDTH = 120
JSON_OPTION = typer.Option("--json", help="Print JSON for programs.")


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, default=str))


def print_told(value: Any, text: str, as_json: bool) -> None:
    """One fact: a sentence for people, or JSON."""
    if as_json:
        print_json(value)
    else:
        typer.echo(text)


def print_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """A table; numbers are right-aligned. A cell may be a `Text` with a style of its own."""
    table = Table()
    for position, column in enumerate(columns):
        numeric = all(_numeric(row[position]) for row in rows) and position > 0
        table.add_column(
            column, justify="right" if numeric else "left", no_wrap=position == 0, overflow="fold"
        )
    for row in rows:
        table.add_row(*(c if isinstance(c, Text) else escape(str(c)) for c in row))
    console = Console(soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # In a file, nobody's window is too narrow.
        console.width = FILE_WIDTH
    # Not as the table's title: that would be broken to the table's width.
    console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    console.print(table)


def percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f}"


def decimal(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _numeric(cell: Any) -> bool:
    return str(cell).strip("-+").replace(".", "", 1).split(" ")[0].isdigit() or str(cell) == "-"
