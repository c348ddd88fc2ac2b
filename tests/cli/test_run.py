import json
from pathlib import Path

import pytest

from foul.cli.run import show_comparison
from foul.experiments.store import slim

from .conftest import Foul

FIGURES = {"method", "fa", "ra", "ta", "mia_auc", "rounds", "bytes", "flops", "seconds"}
SHORT = ("foul:rounds=1", "foul:extra=0", "foul:standin_rounds=1", "foul:batch_size=8")


def test_the_whole_story(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("run", tiny, *SHORT, "-m", "none, foul,retrain", "-o", out)
    outcome = foul(*arguments)
    assert outcome.code == 0, outcome.err
    for text in ("FA %", "RA %", "TA %", "MIA", "rounds", "MB", "GFLOP", "off by"):
        assert text in outcome.out
    assert f"{out}: forgetting domain:north" in outcome.out
    for row in ("learned", "foul", "retrain"):
        assert row in outcome.out
    assert "after 1 rounds" in outcome.out or "the limit of 1 rounds" in outcome.out
    assert "The best stop would have been round " in outcome.out
    assert str(out / "results.json") in outcome.out
    assert "1/1" in outcome.err
    files = {file: file.stat().st_mtime_ns for file in out.glob("models/*.safetensors")}
    assert len(files) == 4
    # The second call does nothing again, and says the same.
    again = foul(*arguments, "-q")
    assert (again.code, again.err) == (0, "")
    assert again.out == outcome.out
    assert {file: file.stat().st_mtime_ns for file in out.glob("models/*.safetensors")} == files


def test_json_is_the_list_of_results(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("run", tiny, "--methods", "none,retrain", "--out", out, "-f", "domain:east")
    results = foul(*arguments, "--json").json
    assert [result["method"] for result in results] == ["none", "retrain"]
    for result in results:
        assert set(result) >= FIGURES
        assert result["forget"] == "domain:east"
    assert results == [slim(r) for r in json.loads((out / "results.json").read_text())]
    assert foul(*arguments, "--json").json == results


def test_settings_and_options_go_where_they_belong(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    arguments = (tiny, "learning.rounds=2", "continue:rounds=3", "retrain:rounds=1", "seed=6")
    results = foul(
        *("run", *arguments, "-m", "continue,retrain", "-o", tmp_path / "out", "--json")
    ).json
    assert [(r["method"], r["rounds"], r["seed"]) for r in results] == [
        *(("continue", 3, 6), ("retrain", 1, 6))
    ]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["rounds"] == 2


def test_a_store_serves_another_folder(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    arguments = ("run", tiny, "-m", "none,retrain", "--json", "--store", tmp_path / "s.json")
    first = foul(*arguments, "-o", tmp_path / "one").json
    assert len(json.loads((tmp_path / "s.json").read_text())) == 2
    # A divergence takes two models, which are not there.
    known = [{k: v for k, v in result.items() if not k.startswith("kl_")} for result in first]
    assert foul(*arguments, "-o", tmp_path / "two").json == known
    models = [file.name for file in (tmp_path / "two" / "models").iterdir()]
    assert models == ["learned.safetensors"]


def test_several_seeds_are_averaged(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    arguments = ("run", tiny, "-m", "none", "--seeds", 2, "-o", tmp_path / "out", "-q")
    outcome = foul(*arguments)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("forgetting domain:north") == 1
    one, other = (100 * result["ra"] for result in foul(*arguments, "--json").json)
    spread = abs(one - other) / 2**0.5
    shown = f"{(one + other) / 2:.1f} ± {spread:.1f}" if spread else f"{one:.1f}"
    row = next(line for line in outcome.out.splitlines() if "learned" in line)
    assert [cell.strip() for cell in row.split("│")[1:5]][:2] == ["learned", "2"]
    assert shown in row
    assert "over 2 seeds" in outcome.out


def test_rounds_that_differ_between_seeds_are_not_rounded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wide enough for a cell to stay in one line.
    monkeypatch.setenv("COLUMNS", "200")
    told = {"method": "foul", "forget": "domain:a", "fa": 0.5, "bytes": 1e6}
    several = [told | {"seed": seed, "rounds": rounds} for seed, rounds in enumerate((6, 8, 8))]
    equal = [told | {"method": "not", "seed": seed, "rounds": 7} for seed in range(3)]
    show_comparison(Path("place"), several + equal)
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in capsys.readouterr().out.splitlines()
    ]
    shown = {row[0]: row[6:8] for row in rows if row[:1] in (["foul"], ["not"])}
    assert shown == {"foul": ["7.3 ± 1.2", "1.0"], "not": ["7", "1.0"]}


def test_the_folder_is_named_after_the_configuration(
    foul: Foul, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert foul("run", tiny, "-m", "none", "-q").code == 0
    assert (tmp_path / "runs" / "tiny" / "results.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "none,retrian"), "Did you mean 'retrain'?"),
        (("foul:kapa=1", "-m", "foul"), "Did you mean 'kappa'?"),
        (("foul:kappa=-1", "-m", "foul"), "greater than or equal to 0"),
        (("foul:kappa", "-m", "foul"), "is not key=value"),
        (("learning.ronds=1",), "Did you mean 'learning.rounds'?"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    foul: Foul, tiny: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = foul("run", tiny, *arguments, "-o", tmp_path / "out")
    assert message in outcome.error()
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tiny]


@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        ("domain:eest", "Did you mean 'east'?"),
        ("east", "domain:NAME or client:ID"),
        ("domain:east,north", "forgets all 2 clients"),
    ],
)
def test_a_bad_request_is_one_line(
    foul: Foul, tiny: Path, tmp_path: Path, request_text: str, message: str
) -> None:
    outcome = foul("run", tiny, "-f", request_text, "-m", "none", "-q", "-o", tmp_path / "out")
    assert message in outcome.error()
    assert outcome.err.count("\n") == 1


def test_no_seeds_are_wrong_usage(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    outcome = foul("run", tiny, "--seeds", 0, "-o", tmp_path / "out")
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "out").exists()


def test_the_table_shows_each_figure_once(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        **{"method": "none", "forget": "domain:a", "seed": 0, "fa": 0.125, "ra": 0.5, "ta": 0.75},
        **{"mia_auc": 0.5125, "rounds": 7, "bytes": 1_500_000, "flops": 42e9, "seconds": 3.2},
    }
    close = row | {"method": "foul", "distance": 1.26, "stopped": "because", "best_stop": None}
    show_comparison(Path("place"), [row, close])
    out = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    figures = ["12.5", "50.0", "75.0", "0.512", "7", "1.5", "42", "3"]
    assert ["learned", *figures, "-"] in cells
    assert ["foul", *figures, "1.3"] in cells
    assert "foul: because.\n" in out
