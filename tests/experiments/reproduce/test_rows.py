import pytest

from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.paper import ROWS
from foul.experiments.reproduce.rows import (
    beside_paper,
    both_tables,
    comparison,
    differences,
    printed_rows,
    rows_of,
)
from foul.experiments.reproduce.sources import Source
from foul.report.tables import MINUS

from .made_up import PACS, REQUEST, done, texts, trial

LABELS = ("learned", "Retrain", "FATS", "FOUL (1)+(2)")
TRIAL = trial(variants("cpu", LABELS))
FIGURES = {
    "learned": {"fa": 0.9},
    "Retrain": {"fa": 0.5, "ra": 0.8, "mia_accuracy": 0.5},
    "FATS": {"fa": 0.55, "ra": 0.78, "mia_accuracy": 0.51, "bytes": 1_000_000},
    "FOUL (1)+(2)": {"fa": 0.65, "ra": 0.9, "mia_accuracy": 0.53},
}


def test_rows_are_variants_over_seeds() -> None:
    again = {label: figures | {"fa": figures["fa"] + 0.02} for label, figures in FIGURES.items()}
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES), done(TRIAL, again, seed=1)])
    assert [row.label for row in rows] == list(LABELS)
    assert rows[2].mean("fa") == pytest.approx(0.56)
    assert [row.reference for row in rows] == [True, True, False, False]
    # A method that failed has no row.
    some = {label: FIGURES[label] for label in LABELS[:3]}
    assert [row.label for row in rows_of(TRIAL, REQUEST, [done(TRIAL, some)])] == list(LABELS[:3])


def test_ours_with_gaps_and_the_headline_of_both() -> None:
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES)])
    table = comparison(rows, ROWS["pacs"])
    fats, foul = table.lines[2].cells, table.lines[3].cells
    assert [column.name for column in table.columns] == [
        *("method", "FA %", "RA %", "TA %", "MIA %"),
        *("off by (paper)", "rounds", "MB / FLOPs %"),
    ]
    assert (fats[1].text, fats[1].beside) == ("55.0", "+5.0")
    assert (fats[2].text, fats[2].beside) == ("78.0", f"{MINUS}2.0")
    # |5| + 2 + 0 + |1| over four, and of the paper |3.94| + 1.93 + 1.47 + |5.70|.
    assert (fats[5].text, fats[5].beside) == ("2.0", "3.3")
    # RA above Retrain is no loss: 15 + 0 + 0 + 3.
    assert foul[5].text == "4.5"
    assert (fats[5].best, foul[5].best) == (True, False)
    assert fats[7].text == "25 / 100"
    assert [line.cells[5].beside for line in table.lines[:2]] == ["", ""]
    assert table.lines[1].cells[1].beside == ""
    assert "off by" in [c.name for c in comparison(rows, {}).columns]


def test_beside_the_paper_stand_the_rows_that_it_has() -> None:
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES)])
    told = texts(beside_paper(rows, ROWS["pacs"]))
    assert [line[0] for line in told] == ["Retrain", "FATS", "FOUL (1)+(2)"]
    assert told[0][1:4] == ["50.0", "70.51", f"{MINUS}20.5"]
    assert told[2][4:7] == ["90.0", "92.33", f"{MINUS}2.3"]


def test_gaps_that_differ_by_five_points_are_told() -> None:
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES)])
    # FATS: 5.0 against 3.94 and so on; FOUL: FA +15 against +0.46, RA +10 against +9.49.
    assert differences(rows, ROWS["pacs"]) == [
        "FOUL (1)+(2), gap to Retrain: FA +15.0 (paper +0.46)."
    ]
    assert differences(rows, {}) == []


def test_the_paper_stands_beside_its_own_data_set_and_domain_only() -> None:
    found = [done(TRIAL, FIGURES)]
    assert len(both_tables(TRIAL, REQUEST, found)[0]) == 2
    other = trial(TRIAL.variants, forget=("domain:photo",))
    assert len(both_tables(other, "domain:photo", [])[0]) == 1
    assert printed_rows(trial((), Source("digits28", None, ("usps",))), "domain:usps") == {}
    made = Source("pacs", None, PACS.domains, made=True)
    assert printed_rows(trial((), made), REQUEST) == {}
