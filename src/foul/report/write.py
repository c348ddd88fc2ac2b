"""Write a report: the page, and tables and pictures for papers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foul.names import slug
from foul.report.aggregate import Row, aggregate, to_json
from foul.report.charts.files import to_png
from foul.report.collect import Collection, collect
from foul.report.gallery import Chart, forgotten, picture_charts, request_charts
from foul.report.headline import headline, missing_retrain
from foul.report.latex import to_latex
from foul.report.officer import account
from foul.report.page import Section, render
from foul.report.spreadsheet import to_csv
from foul.report.tables import attacks, comparison, costs, knowledge, learning_costs
from foul.runs.atomic import not_written, write_text


def write_report(
    runs: Sequence[Path],
    out: Path,
    csv: Path | None = None,
    latex: Path | None = None,
    png: Path | None = None,
) -> Path:
    """Report on runs that share their data.

    Args:
        runs: run folders, or folders of seed runs.
        out: the page.
        csv: where to put every figure as comma-separated values.
        latex: where to put the comparison as booktabs tables.
        png: a folder for every chart as a picture.

    Returns:
        `out`.

    Raises:
        UserError: a path that is no run, a run without results, or runs with different data.
        MachineError: a file cannot be written.
    """
    found = collect(runs)
    sections = [_section(found, request, n) for n, request in enumerate(found.requests, 1)]
    pictures = list(picture_charts(found.pictures)) if found.pictures else []
    _write(out, render(sections, pictures, found.runs))
    if csv:
        _write(csv, to_csv(found.entries))
    if latex:
        _write(latex, to_latex({s.request: s.comparison for s in sections}))
    if png:
        for chart in pictures:
            _draw(chart, png / f"{slug(chart.name)}.png")
        for section in sections:
            for chart in section.charts:
                _draw(chart, png / f"{section.anchor}-{slug(chart.name)}.png")
    return out


def figures(runs: Sequence[Path]) -> dict[str, Any]:
    """Mean, std and n of every metric by request and method.

    Raises:
        UserError: as `write_report`.
    """
    found = collect(runs)
    return {request: to_json(aggregate(found.of(request))) for request in found.requests}


def _section(found: Collection, request: str, position: int) -> Section:
    entries = found.of(request)
    rows: list[Row] = aggregate(entries)
    clients = forgotten(request, entries)
    anchor = f"{position}-{slug(request)}"
    return Section(
        request=request,
        anchor=anchor,
        sentences=headline(rows),
        missing=missing_retrain(rows),
        seeds=sorted({entry.seed for entry in entries}),
        comparison=comparison(rows),
        costs=costs(rows, learning_costs([run.summary for run in found.runs])),
        attacks=attacks(rows),
        knowledge=knowledge(rows),
        charts=list(request_charts(rows, clients)),
        account=account(request, rows, clients, entries[0].run.facts),
    )


def _write(path: Path, text: str) -> None:
    _make_folder(path)
    write_text(path, text)


def _draw(chart: Chart, path: Path) -> None:
    _make_folder(path)
    to_png(chart.figure, path)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(path, error) from error
