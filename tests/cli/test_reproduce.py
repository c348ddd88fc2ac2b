import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from foul.experiments.reproduce.made import made_source
from foul.experiments.reproduce.plan import Outcome
from foul.experiments.reproduce.reproduce import Reproduced
from foul.experiments.study import Failure

from .conftest import Foul

SHORT = ("learning.rounds=1",)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for everything of this module: commands share what they learn."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(autouse=True)
def _cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOUL_CACHE", str(place / "cache"))


@pytest.fixture(scope="module")
def pacs(place: Path) -> Path:
    """Made images that look like PACS."""
    path = made_source("pacs", place / "images").path
    assert path is not None
    return path


def run(foul: Foul, place: Path, name: str, *arguments: object) -> dict[str, Any]:
    """A command at smoke size, in a folder of its own; answers its JSON."""
    told: dict[str, Any] = foul(
        *("reproduce", name, *arguments, *SHORT, "--size", "smoke", "--json", "-q"),
        *("--out", place / name, "--runs", place / "runs"),
    ).json
    for end in ("json", "md", "tex"):
        assert list((place / name).glob(f"{name}*-smoke.{end}"))
    if name.startswith("fig-"):
        pictures = list((place / name).glob("*.png"))
        assert pictures
        for file in pictures:
            with PIL.Image.open(file) as image:
                image.load()
    return told


def test_the_main_table_prints_the_papers_figures_beside_ours(
    foul: Foul, place: Path, pacs: Path
) -> None:
    told = run(foul, place, "table-main", pacs, "--docs", place / "docs")
    ours, beside = told["tables"]
    assert len(ours["rows"]) == 19
    by_method = {row["method"]: row for row in beside["rows"]}
    assert (by_method["FOUL (1)"]["paper"], by_method["as printed"]["RA %, paper"]) == (
        "69.53",
        "92.33",
    )
    assert told["command"] == "foul reproduce table-main pacs learning.rounds=1 --size smoke"
    assert any("decision 15" in note for note in told["notes"])
    assert any("Terra Incognita was not given" in note for note in told["notes"])
    page = (place / "docs" / "table-main-pacs-smoke.md").read_text()
    assert told["command"] in page
    assert str(place) not in page
    assert not any(note.startswith("Failed") for note in told["notes"])


@pytest.mark.parametrize("name", ["table-cost", "fig-tradeoff", "table-appendix"])
def test_others_of_the_same_methods_learn_nothing_again(
    foul: Foul, place: Path, pacs: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(foul, place, "table-main", pacs)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("unlearned again")

    monkeypatch.setattr("foul.experiments.study.unlearn", never)
    told = run(foul, place, name, pacs)
    assert len(told["trials"][0]["results"]) == 19


def test_what_failed_is_listed_last_and_told_by_the_exit_code(
    foul: Foul, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure("FOUL", "domain:-90%", 3, "no matching today")
    told = {"failures": [failure.to_dict()]}
    found = Reproduced(Outcome([], {}, ["as asked"]), told, [place / "page.md"], [failure])
    monkeypatch.setattr("foul.cli.reproduce.run_experiment", lambda *_: found)
    arguments = ("reproduce", "table-colored-mnist", "--size", "smoke", "-q", "-o", place / "x")
    outcome = foul(*arguments)
    assert outcome.code == 1
    last = [cell.strip() for cell in outcome.out.splitlines()[-2].split("│")[1:-1]]
    assert last == ["FOUL", "domain:-90%", "3", "no matching today"]
    assert outcome.out.index("page.md") < outcome.out.index("no matching today")
    outcome = foul(*arguments, "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out) == told


def test_curves_of_forgetting(foul: Foul, place: Path, pacs: Path) -> None:
    told = run(foul, place, "fig-forgetting", pacs, "-f", "domain:photo")
    assert [row["approach"] for row in told["tables"][0]["rows"]] == [
        *("FOUL (1)+(2)", "paper's (1)+(2)", "Retrain, with reset", "Retrain, no reset")
    ]


@pytest.mark.slow
def test_the_sweep_over_kappa_and_eta(foul: Foul, place: Path, pacs: Path) -> None:
    told = run(foul, place, "fig-kappa-eta", pacs)
    results = told["trials"][0]["results"].values()
    assert {r["at"]["kappa"] for r in results if r["method"] == "foul-paper"} == {0.2, 0.5}


@pytest.mark.slow
def test_sweeps_over_learning_share_their_models(foul: Foul, place: Path, pacs: Path) -> None:
    told = run(foul, place, "fig-capacity", pacs)
    assert [row["K + V"] for row in told["tables"][0]["rows"]] == ["8 + 24", "16 + 16"]
    before = {path.name for path in (place / "runs").iterdir()}
    told = run(foul, place, "fig-dimension", pacs)
    assert len(told["tables"][0]["rows"]) == 8
    assert {path.name for path in (place / "runs").iterdir()} == before


@pytest.mark.slow
def test_the_coefficients_on_images_that_the_command_makes(foul: Foul, place: Path) -> None:
    told = run(foul, place, "fig-coefficients")
    assert told["made_images"]
    assert told["data"] == ["vlcs"]
    assert len(told["tables"][0]["rows"]) == 8


@pytest.mark.slow
def test_colored_mnist_needs_no_data(foul: Foul, place: Path) -> None:
    told = run(foul, place, "table-colored-mnist", "data.max_per_domain=60")
    assert [len(table["rows"]) for table in told["tables"]] == [6, 6]
    assert len(told["trials"]) == 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table-main", "table-appendix", "fig-tradeoff"])
def test_all_data_sets_of_a_table_on_made_images(foul: Foul, tmp_path: Path, name: str) -> None:
    told = run(foul, tmp_path, name)
    assert len(told["trials"]) == 2
    assert not any(note.startswith("Failed") for note in told["notes"])


def test_tables_and_notes_for_people(foul: Foul, place: Path, pacs: Path) -> None:
    run(foul, place, "fig-forgetting", pacs, "-f", "domain:photo")
    outcome = foul(
        *("reproduce", "fig-forgetting", pacs, "-f", "domain:photo", *SHORT, "--size", "smoke"),
        *("-q", "--out", place / "people", "--runs", place / "runs"),
    )
    assert outcome.code == 0, outcome.err
    assert "Retrain, with reset" in outcome.out
    assert "decision 14" in outcome.out
    assert "Written: " in outcome.out


def test_another_machine_goes_on_from_the_json(
    foul: Foul, place: Path, pacs: Path, tmp_path: Path
) -> None:
    run(foul, place, "fig-forgetting", pacs, "-f", "domain:photo")
    file = place / "fig-forgetting" / "fig-forgetting-pacs-smoke.json"
    told = foul(
        *("reproduce", "fig-forgetting", pacs, "-f", "domain:photo", *SHORT, "--size", "smoke"),
        *("-q", "--json", "--out", tmp_path / "out", "--known", file),
    ).json
    assert told["command"].endswith("--known fig-forgetting-pacs-smoke.json")
    assert f"4 of 4 results were taken from {file.name}" in told["notes"][0]
    # Nothing but the learned model was made here.
    [folder] = (tmp_path / "out" / "runs").glob("pacs-*/seed-0")
    assert [path.name for path in (folder / "models").iterdir()] == ["learned.safetensors"]


def test_an_estimate_runs_nothing(foul: Foul, place: Path, pacs: Path, tmp_path: Path) -> None:
    arguments = ("reproduce", "fig-capacity", pacs, "--size", "smoke", "--estimate", "-q")
    outcome = foul(*arguments, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "extrapolated from two rounds" in outcome.out
    assert not (tmp_path / "out").exists()
    told = foul(*arguments, "--seeds", 3, "--out", tmp_path / "out", "--json").json
    each = [trial["minutes"] for trial in told["trials"]]
    assert told["minutes"] == pytest.approx(3 * sum(each))


def test_the_list(foul: Foul) -> None:
    listed = foul("reproduce", "list", "--json").json
    assert len(listed) == 10
    assert listed[0]["name"] == "table-main"
    out = foul("reproduce", "list").out
    assert all(entry["name"] in out for entry in listed)


def test_images_of_ones_own_have_no_column_of_the_paper(
    foul: Foul, place: Path, own_images: Path
) -> None:
    told = run(foul, place, "fig-forgetting", own_images)
    assert told["data"] == ["folder"]
    assert "paper" not in told["tables"][0]["rows"][0]
    assert any("has no figures of own" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tabel-main",), "Did you mean 'table-main'?"),
        (("table-main", "--size", "big"), "no size 'big'"),
        (
            ("fig-forgetting", "--data", "digits", "--known", "nowhere.json"),
            "There is no file nowhere.json",
        ),
        (("table-main",), "No data was named (PACS: https://"),
        (("fig-dimension", "nowhere"), "There is nothing at nowhere"),
        (("table-main", "--data", "pacs"), "There is nothing at pacs"),
        (("fig-capacity", "--size", "smoke", "learning.round=1"), "learning.rounds"),
    ],
)
def test_mistakes_are_explained(
    foul: Foul, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert words in foul("reproduce", *arguments, "-q", "--out", tmp_path / "out").error()


def test_a_domain_that_is_not_there(foul: Foul, place: Path, pacs: Path, tmp_path: Path) -> None:
    arguments = ("fig-forgetting", pacs, *SHORT, "--size", "smoke", "-f", "domain:sketsh")
    error = foul("reproduce", *arguments, "-q", "-o", tmp_path, "--runs", place / "runs").error()
    assert "Did you mean 'sketch'?" in error
