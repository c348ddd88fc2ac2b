import re
from pathlib import Path

from foul.report.aggregate import aggregate
from foul.report.collect import collect
from foul.report.gallery import request_charts
from foul.report.officer import account
from foul.report.page import Section, render
from foul.report.tables import MINUS, Table, attacks, comparison

from .reported import REQUEST, THREE, result, write_run


def rendered(run: Path) -> str:
    found = collect([run])
    rows = aggregate(found.entries)
    section = Section(
        request=REQUEST,
        anchor="one",
        sentences=["It forgot."],
        missing="",
        seeds=[0],
        comparison=comparison(rows),
        costs=Table([], []),
        attacks=attacks(rows),
        knowledge=Table([], []),
        charts=list(request_charts(rows, frozenset())),
        account=account(REQUEST, rows, frozenset(), found.runs[0].facts),
    )
    return render([section], [], found.runs)


def test_the_best_is_marked_and_dashes_stand_for_nothing(tmp_path: Path) -> None:
    told = [*THREE, result("continue", 0.8, mia_auc=None)]
    text = rendered(write_run(tmp_path / "run", told))
    assert f'<td class="best"><b>50.0</b><small>{MINUS}10.0</small></td>' in text
    assert "<td><b>-</b></td>" in text


def test_parts_without_content_are_left_out(tmp_path: Path) -> None:
    text = rendered(write_run(tmp_path / "run"))
    for heading in ("Costs", "What the models still know", "Client by client"):
        assert f"<h3>{heading}</h3>" not in text
    assert 'id="pictures"' not in text
    assert "<h3>Round by round</h3>" in text


def test_both_schemes_paper_and_phones_are_provided_for(tmp_path: Path) -> None:
    text = rendered(write_run(tmp_path / "run"))
    assert "prefers-color-scheme: dark" in text
    assert "page-break-before: always" in text
    assert 'name="viewport" content="width=device-width' in text
    assert re.search(r"\.box \{ overflow-x: auto", text)
