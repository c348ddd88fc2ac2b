from pathlib import Path

import pytest
from report.reported import THREE, result, write_run

from .conftest import Foul


def test_the_page_is_in_the_first_run_unless_told_otherwise(foul: Foul, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert f"Written: {run / 'report.html'}" in foul("report", run).out
    assert "Forgetting domain:east" in (run / "report.html").read_text()
    out = foul("report", run, "--out", tmp_path / "r.html", "--png", tmp_path / "png").out
    assert out.splitlines() == [f"Written: {tmp_path / 'r.html'}", f"Written: {tmp_path / 'png'}"]
    assert (tmp_path / "png" / "1-domain-east-fa.png").is_file()


def test_figures_for_programs(foul: Foul, tmp_path: Path) -> None:
    for seed, fa in ((0, 0.5), (1, 0.7)):
        write_run(tmp_path / f"seed-{seed}", [result("foul", fa), THREE[2]], seed=seed)
    files = ("--csv", tmp_path / "a.csv", "--latex", tmp_path / "a.tex")
    told = foul("report", tmp_path, *files, "--json").json
    assert told["report"] == str(tmp_path / "report.html")
    assert told["requests"]["domain:east"]["foul"]["fa"]["n"] == 2
    assert told["requests"]["domain:east"]["foul"]["fa"]["mean"] == pytest.approx(0.6)
    assert (tmp_path / "a.csv").read_text().count("\n") == 5
    assert r"$\pm$ 14.1" in (tmp_path / "a.tex").read_text()


def test_mistakes_are_one_line(foul: Foul, tmp_path: Path) -> None:
    assert "is not a run folder" in foul("report", tmp_path / "nowhere").error()
    empty = write_run(tmp_path / "empty", [])
    assert f"`foul unlearn {empty} --forget" in foul("report", empty).error()
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", classes=("x",))]
    assert "have different data (classes differ: bars, disc, x)" in foul("report", *runs).error()
    (runs[0] / "results.json").write_text("{")
    assert "results.json is not valid JSON" in foul("report", runs[0]).error()
    assert not list(tmp_path.rglob("report.html"))
