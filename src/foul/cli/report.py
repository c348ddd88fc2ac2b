"""`foul report`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, print_json
from foul.report.write import figures, write_report


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of seed runs.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; default RUN/report.html.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Every figure, for programs.")] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", help="The comparison as booktabs tables.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="A folder for every chart as a picture.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Write a page about what runs forgot: one file that works offline.

    Several runs of the same data are put side by side; those that differ in nothing but their
    seed are averaged.

    Examples:

      foul report runs/demo

      foul report runs/story --out story.html --latex table.tex --png figures
    """
    page = write_report(runs, out or runs[0] / "report.html", csv, latex, png)
    if as_json:
        print_json({"report": str(page), "requests": figures(runs)})
        return
    for path in (page, csv, latex, png):
        if path:
            typer.echo(f"Written: {path}")
