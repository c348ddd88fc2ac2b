import csv
import os
import re
import time
from io import StringIO
from pathlib import Path

import PIL.Image
import pytest

from foul import UserError
from foul.errors import MachineError
from foul.report.write import figures, write_report

from .reported import CLIENTS, THREE, evaluation, result, write_pictures, write_run

HOSTILE = "<script>alert('&\"1')</script>$\\frac$"


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    """A run in which everything was measured."""
    told = {method: evaluation(0.5) for method in ("none", "foul", "retrain")}
    run = write_run(tmp_path / "run", evaluations=told)
    write_pictures(run)
    return run


def page(run: Path) -> str:
    return write_report([run], run / "report.html").read_text(encoding="utf-8")


def test_the_page_needs_nothing_but_itself(rich: Path) -> None:
    text = page(rich)
    assert set(re.findall(r"https?://[^\s\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "@import" not in text
    sources = re.findall(r"(?:href|src)=\"([^\"]*)\"", text)
    assert sources
    assert all(source.startswith(("#", "data:")) for source in sources)


def test_every_link_leads_somewhere_and_no_id_is_there_twice(rich: Path) -> None:
    write_run(rich.parent / "two", [*THREE, *({**r, "forget": "client:north-0"} for r in THREE)])
    for text in (page(rich), page(rich.parent / "two")):
        ids = re.findall(r'\sid="([^"]*)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
        assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(ids)


def test_the_page_says_what_was_found_and_how_it_was_made(rich: Path) -> None:
    text = page(rich)
    for told in (
        "foul was run: it is 3.8 points off",
        "Forgetting domain:east",
        "<code>foul run small</code>",
        "backbone = &#34;tiny&#34;",
        "What is not claimed",
        "until somebody deletes them",
        "are not all attacks",
    ):
        assert told in text
    assert "certified" not in text.lower()
    assert text.count('<svg xmlns="http://www.w3.org/2000/svg" viewBox=') == 12
    assert "Gaps to Retrain cannot be told" not in text


def test_without_retrain_the_command_is_told(tmp_path: Path) -> None:
    text = page(write_run(tmp_path / "run", THREE[:2]))
    command = f"foul unlearn {tmp_path / 'run'} --forget domain:east --method retrain"
    assert text.count(f"<code>{command}</code>") == 2


def test_hostile_names_are_text(tmp_path: Path) -> None:
    clients = CLIENTS | {HOSTILE: HOSTILE}
    results = [r | {"forget": f"client:{HOSTILE}", "stopped": HOSTILE} for r in THREE]
    told = evaluation(0.5)
    told["accuracy"]["clients"] = {name: {"train": {"accuracy": 0.5}} for name in clients}
    told["attacks"] = {HOSTILE: told["attacks"]["loss"]}
    run = write_run(
        tmp_path / "run", results, clients=clients, evaluations={"none": told, "foul": told}
    )
    text = page(run)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    report = write_report([run], run / "a.html", latex=run / "a.tex", png=run / "png")
    assert report.is_file()
    assert r"\textbackslash{}frac\$" in (run / "a.tex").read_text()


def test_letters_that_the_font_lacks_are_no_warning(tmp_path: Path) -> None:
    told = evaluation(0.5)
    told["accuracy"]["clients"] = {"医院": {"train": {"accuracy": 0.5}}}
    run = write_run(tmp_path / "run", evaluations={"foul": told})
    assert "医院" in write_report([run], run / "a.html", png=run / "png").read_text("utf-8")


def test_an_old_run_with_hardly_a_figure(tmp_path: Path) -> None:
    bare = [{"method": m, "forget": "domain:east"} for m in ("none", "foul", "retrain")]
    assert "was not measured" in page(write_run(tmp_path / "run", bare))


def test_several_seeds_are_averaged(tmp_path: Path) -> None:
    for seed, fa in ((0, 0.4), (1, 0.6)):
        write_run(tmp_path / f"seed-{seed}", [result("foul", fa), THREE[2]], seed=seed)
    text = page(tmp_path)
    assert "Means over n seeds (0, 1)" in text
    assert "<b>50.0</b> <span>± 14.1</span>" in text
    told = figures([tmp_path])["domain:east"]["foul"]["fa"]
    assert (told["mean"], told["n"]) == (pytest.approx(0.5), 2)


def test_tables_and_pictures_for_papers(rich: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    write_report([rich], out / "r.html", csv=out / "a.csv", latex=out / "a.tex", png=out / "png")
    lines = list(csv.DictReader(StringIO((out / "a.csv").read_text())))
    assert [line["method"] for line in lines] == ["none", "foul", "retrain"]
    assert r"\toprule" in (out / "a.tex").read_text()
    names = {file.name for file in (out / "png").iterdir()}
    assert {"1-domain-east-fa.png", "1-domain-east-roc.png", "reconstructions.png"} <= names
    assert len(names) == 12
    for file in (out / "png").iterdir():
        with PIL.Image.open(file) as image:
            assert image.format == "PNG"
            image.load()


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", evaluations={"none": evaluation(0.9)})
    assert page(run) == page(run)


def test_the_old_page_stays_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run")
    before = page(run)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MachineError, match=r"report\.html"):
        write_report([run], run / "report.html")
    assert (run / "report.html").read_text() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with pytest.raises(MachineError, match=r"r\.html could not be written"):
        write_report([run], run / "run.json" / "r.html")


def test_a_mistake_writes_nothing(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", classes=("x",))]
    with pytest.raises(UserError, match="classes differ"):
        write_report(runs, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_report_of_five_methods_takes_seconds(tmp_path: Path) -> None:
    methods = ("none", "foul-paper", "foul", "continue", "retrain")
    told = {method: evaluation(0.5) for method in methods}
    run = write_run(tmp_path / "run", [result(m) for m in methods], evaluations=told)
    write_pictures(run)
    began = time.process_time()
    page(run)
    assert time.process_time() - began < 5
