import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from foul.errors import UserError
from foul.experiments import study
from foul.runs.folder import RunFolder
from foul.unlearning.methods import METHODS
from foul.unlearning.stage import unlearn

from .conftest import Foul

SHORT = (
    "not:rounds=1",
    "foul:rounds=1",
    "foul:extra=0",
    "foul:standin_rounds=1",
    "foul:batch_size=8",
)


def test_methods_branch_from_one_model(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    chosen = ("-m", "none,not,fedrecovery,foul,retrain", "-f", "domain:north", "-o", out)
    outcome = foul("compare", tiny, *SHORT, *chosen, "--seeds", 2)
    assert outcome.code == 0, outcome.err
    rows = [line.split("│")[1:3] for line in outcome.out.splitlines() if "│" in line]
    assert [(method.strip(), n.strip()) for method, n in rows] == [
        ("learned", "2"),
        ("not", "2"),
        ("fedrecovery", "2"),
        ("foul", "2"),
        ("retrain", "2"),
    ]
    assert (out / "report.html").is_file()
    assert RunFolder.open(out / "seed-0").config().federation.history == "domains"
    results = foul("compare", tiny, *SHORT, *chosen, "--seeds", 2, "--json").json
    assert len(results) == 10


def test_from_the_plain_twin_those_that_need_l2u_are_left_out(
    foul: Foul, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    monkeypatch.setattr("foul.cli.compare.perform", lambda chosen, *_: asked.append(chosen))
    foul("compare", tiny, "--start", "plain", "-o", tmp_path / "a", "--json")
    foul("compare", tiny, "-o", tmp_path / "b", "--json")
    plain, l2u = asked
    assert plain.config.learning.objective == "supervised"
    assert l2u.config.learning.objective == "l2u"
    needy = {name for name in l2u.methods if METHODS[name].method.requirements.l2u}
    assert needy == {"foul", "foul-paper"}
    assert set(plain.methods) == set(l2u.methods) - needy
    assert plain.keep_going


def test_one_that_fails_does_not_stop_the_others(
    foul: Foul, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: Path, forget: str, method: str, *rest: Any, **more: Any) -> Any:
        if method == "not":
            raise RuntimeError("no layer left")
        return unlearn(run, forget, method, *rest, **more)

    monkeypatch.setattr(study, "unlearn", broken)
    out = tmp_path / "out"
    arguments = ("compare", tiny, "-m", "none,not,retrain", "-o", out)
    outcome = foul(*arguments)
    assert outcome.code == 1
    assert "failed: not, domain:north, seed 0" in outcome.err
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in outcome.out.splitlines()]
    assert rows.index(["not", "domain:north", "0", "RuntimeError: no layer left"]) > next(
        place for place, row in enumerate(rows) if row[:1] == ["retrain"]
    )
    assert (out / "report.html").is_file()
    assert len(json.loads((out / "results.json").read_text())) == 2
    again = foul(*arguments, "--json", "-q")
    assert again.code == 1
    *results, failure = json.loads(again.out)
    assert [result["method"] for result in results] == ["none", "retrain"]
    assert failure == {
        "method": "not",
        "forget": "domain:north",
        "seed": 0,
        "failed": "RuntimeError: no layer left",
    }


def test_where_all_fail_there_is_nothing_but_why(
    foul: Foul, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise UserError("It needs a tailwind", "Wait.")

    monkeypatch.setattr(study, "unlearn", broken)
    outcome = foul("compare", tiny, "-m", "none,not", "-o", tmp_path / "out", "-q")
    assert outcome.code == 1
    assert outcome.out.count("It needs a tailwind. Wait.") == 2
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("verb", ["run", "compare"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", ""), "No method was chosen. Name one of `foul methods`"),
        (("-m", " , "), "No method was chosen"),
        (("not:rounds=1", "-m", "none,retrain"), "options for 'not', which this run does not use"),
    ],
)
def test_what_would_do_nothing_is_refused(
    foul: Foul, tiny: Path, tmp_path: Path, verb: str, arguments: tuple[str, ...], message: str
) -> None:
    assert message in foul(verb, tiny, *arguments, "-o", tmp_path / "out").error()
    assert not (tmp_path / "out").exists()


def test_a_run_folder_lends_its_configuration(foul: Foul, tiny: Path, tmp_path: Path) -> None:
    foul("learn", tiny, "-o", tmp_path / "run")
    out = tmp_path / "out"
    outcome = foul("compare", tmp_path / "run", "-m", "none,retrain", "-o", out, "--json")
    assert [result["method"] for result in outcome.json] == ["none", "retrain"]
    assert RunFolder.open(out).config().clients.per_domain == 1


def test_a_run_from_which_somebody_was_erased_is_not_learned_anew(
    foul: Foul, finished_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    RunFolder.open(run).write_erased(["north-1"])
    told = foul("compare", run, "-m", "not", "-o", tmp_path / "out").error()
    assert "north-1 was erased from" in told
    assert not (tmp_path / "out").exists()
