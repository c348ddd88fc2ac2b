import json
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest
from matplotlib.figure import Figure

from foul.experiments.reproduce.colored_mnist import EXPERIMENT as COLORED
from foul.experiments.reproduce.domain_tables import MAIN
from foul.experiments.reproduce.plan import Asked, Outcome, Shown, Variant
from foul.experiments.reproduce.sources import Source
from foul.experiments.reproduce.write import stem_of, table_lines, text_of, write
from foul.experiments.study import Failure
from foul.report.tables import Cell, Column, Line, Table

from .made_up import PACS, done, trial

TABLE = Table(
    [Column("method"), Column("FA %"), Column("paper"), Column("RA %"), Column("paper")],
    [
        Line([Cell("Retrain"), Cell("50.0"), Cell("70.51"), Cell("80.0"), Cell("82.84")]),
        Line(
            [
                Cell("a|b"),
                Cell("55.0", "± 1.0", "+5.0", best=True),
                Cell("-"),
                Cell("1"),
                Cell("2"),
            ]
        ),
    ],
)
TRIAL = trial([Variant("Retrain", "retrain"), Variant("NoT", "not")])


def outcome(figures: int = 1) -> Outcome:
    return Outcome(
        [Shown("A caption.", TABLE)],
        {f"f{n}": Figure(figsize=(1, 1)) for n in range(figures)},
        ["It differs (decision 15)."],
    )


def test_a_cell_is_a_line_of_text() -> None:
    assert text_of(Cell("55.0", "± 1.0", "+5.0")) == "55.0 ± 1.0 (+5.0)"
    assert text_of(Cell("-")) == "-"


def test_a_table_is_markdown_with_the_best_in_bold() -> None:
    lines = table_lines(TABLE).splitlines()
    assert lines[:2] == ["| method | FA % | paper | RA % | paper |", "|" + " --- |" * 5]
    assert lines[3].startswith(r"| a\|b | **55.0 ± 1.0 (+5.0)** |")


def test_files_are_named_after_what_was_asked() -> None:
    digits = Source("digits28", None, ("usps",))
    assert stem_of(MAIN, Asked([PACS], "cpu")) == "table-main-pacs"
    assert stem_of(MAIN, Asked([PACS, digits], "paper")) == "table-main-pacs-digits28-paper"
    asked = Asked([Source("colored-mnist", None, ())], "smoke")
    assert stem_of(COLORED, asked) == "table-colored-mnist-smoke"
    assert stem_of(MAIN, Asked([PACS], "cpu"), seeds=3) == "table-main-pacs-3-seeds"


@pytest.mark.parametrize("figures", [0, 1, 2])
def test_everything_is_written(tmp_path: Path, figures: int) -> None:
    found = [done(TRIAL, {"Retrain": {}, "NoT": {"options": {"rounds": 5}}})]
    told, files = write(
        MAIN,
        Asked([PACS], "cpu"),
        found,
        outcome(figures),
        tmp_path / "out",
        "foul reproduce table-main PACS.zip",
        tmp_path / "docs",
    )
    ends = {0: [], 1: [".png"], 2: ["-f0.png", "-f1.png"]}[figures]
    names = {f"table-main-pacs{end}" for end in (".json", ".md", ".tex", *ends)}
    assert {file.name for file in (tmp_path / "out").iterdir()} == names
    docs = {f"table-main-pacs{end}" for end in (".md", *ends)}
    assert {file.name for file in (tmp_path / "docs").iterdir()} == docs
    assert all(file.is_file() for file in files)
    assert json.loads((tmp_path / "out" / "table-main-pacs.json").read_text()) == told
    page = (tmp_path / "docs" / "table-main-pacs.md").read_text()
    assert "    foul reproduce table-main PACS.zip\n" in page
    assert f"foul {told['version']}, {told['date']}." in page
    assert "- It differs (decision 15)." in page
    for end in ends:
        assert f"(table-main-pacs{end})" in page
        with PIL.Image.open(tmp_path / "docs" / f"table-main-pacs{end}") as image:
            image.load()
    assert r"\caption{A caption.}" in (tmp_path / "out" / "table-main-pacs.tex").read_text()


def test_results_are_keyed_by_what_made_them(tmp_path: Path) -> None:
    found = [
        done(TRIAL, {"Retrain": {}, "NoT": {"options": {"rounds": 5}}}, seed) for seed in (0, 1)
    ]
    told, _ = write(MAIN, Asked([PACS], "cpu"), found, outcome(), tmp_path, "")
    assert (tmp_path / "table-main-pacs-2-seeds.json").is_file()
    keys = [key for trial in told["trials"] for key in trial["results"]]
    assert len(set(keys)) == 4
    assert {r["method"] for r in told["trials"][0]["results"].values()} == {"retrain", "not"}
    assert told["tables"][0]["rows"][0] == {
        "method": "Retrain",
        "FA %": "50.0",
        "paper": "70.51",
        "RA %": "80.0",
        "RA %, paper": "82.84",
    }


def test_what_failed_is_told_with_the_reason(tmp_path: Path) -> None:
    failure = Failure("NoT", "domain:sketch", 0, "no layer left")
    found = [replace(done(TRIAL, {"Retrain": {}}), failures=[failure])]
    told, _ = write(MAIN, Asked([PACS], "cpu"), found, outcome(), tmp_path, "")
    assert told["failures"] == [
        {"method": "NoT", "forget": "domain:sketch", "seed": 0, "failed": "no layer left"}
    ]


def test_made_images_are_no_result(tmp_path: Path) -> None:
    made = Source("pacs", None, PACS.domains, made=True)
    told, _ = write(MAIN, Asked([made], "smoke"), [], outcome(), tmp_path, "")
    assert told["made_images"]
    assert "not a result" in (tmp_path / "table-main-pacs-smoke.md").read_text()
