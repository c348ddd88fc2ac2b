import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import forgetting_untested

from foul import RunFolder
from foul.experiments.store import slim
from foul.runs.results import add_results
from foul.unlearning.stage import unlearn

from .conftest import Foul

EAST = "domain:east"


@pytest.fixture(scope="module")
def evaluated_run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with results of two methods; do not change it."""
    run = Path(shutil.copytree(finished_run, tmp_path_factory.mktemp("evaluate") / "run"))
    unlearn(run, EAST, "none")
    unlearn(run, EAST, "retrain", ["rounds=1"])
    return run


@pytest.fixture
def run(evaluated_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(evaluated_run, tmp_path / "run"))


def listed(run: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((run / "results.json").read_text())
    return found


def rows(out: str) -> dict[str, list[str]]:
    """Cells of the tables by their first one."""
    cells = [[c.strip() for c in line.split("│")[1:-1]] for line in out.splitlines()]
    return {row[0]: row[1:] for row in cells if row}


def test_the_whole_table(foul: Foul, run: Path) -> None:
    outcome = foul("evaluate", run)
    assert outcome.code == 0, outcome.err
    assert f"{run}: forgetting {EAST}" in outcome.out
    told, results = rows(outcome.out), listed(run)
    for title, key in (("FA %", "fa"), ("RA %", "ra"), ("TA %", "ta"), ("MIA %", "mia_accuracy")):
        assert told[title] == [f"{100 * result[key]:.1f}" for result in results]
    assert told["KL test nats"] == [f"{results[0]['kl_test']:.3f}", "0.000"]
    for attack in ("loss", "confidence", "entropy", "modified_entropy", "logistic", "svm"):
        for cell in told[attack]:
            assert re.fullmatch(r"[01]\.\d{3} \([01]\.\d{3} to [01]\.\d{3}\)", cell)
    assert told["loss"][0].startswith(f"{results[0]['mia_auc']:.3f} ")
    # Nobody carries a trigger, and nobody has asked for relearning.
    assert not {"backdoor %", "relearn rounds"} & set(told)
    assert (run / "evaluation" / "pictures.safetensors").is_file()


def test_json_is_what_the_folder_holds(foul: Foul, run: Path) -> None:
    before = {result["method"]: result for result in listed(run)}
    found = foul("evaluate", run, "--json", "-q").json
    assert [result["method"] for result in found] == ["none", "retrain"]
    for result, kept in zip(found, listed(run), strict=True):
        about = result.pop("evaluation")
        assert result == slim(kept)
        assert about == RunFolder.open(run).load_evaluation(f"{kept['method']}-domain-east")
        assert about["attacks"]["loss"]["auc"] == kept["mia_auc"]
        assert about["kl"]["forget"] == kept["kl_forget"]
        # Nothing that was there has changed.
        old = before[kept["method"]]
        assert {key: kept[key] for key in old} == old
    again = foul("evaluate", run, "--json", "-q").json
    for result in again:
        result.pop("evaluation")
    assert again == found


def test_chosen_methods_and_parts(foul: Foul, run: Path) -> None:
    outcome = foul("evaluate", run, "-m", "none", "--parts", "kl, relearn", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    told = rows(outcome.out)
    assert told["relearn rounds"] == ["0"]
    results = {result["method"]: result for result in listed(run)}
    assert results["none"]["kl_test"] > 0
    assert "kl_test" not in results["retrain"]
    assert not (run / "evaluation" / "pictures.safetensors").exists()


def test_a_request_of_several(foul: Foul, run: Path) -> None:
    foul("unlearn", run, "-f", "client:north-0", "-m", "none", "-q")
    both = foul("evaluate", run, "--parts", "kl", "-q")
    assert both.out.count(": forgetting ") == 2
    one = foul("evaluate", run, "--parts", "kl", "-q", "--forget", "client:north-0")
    assert one.out.count(": forgetting ") == 1
    assert "forgetting client:north-0" in one.out


def test_without_retrain_it_says_how_to_get_it(foul: Foul, run: Path) -> None:
    foul("unlearn", run, "-f", "client:north-0", "-m", "none", "-q")
    outcome = foul("evaluate", run, "-f", "client:north-0", "-q")
    assert outcome.code == 0, outcome.err
    command = f"foul unlearn {run} --forget client:north-0 --method retrain"
    assert command in " ".join(outcome.out.split())
    assert "KL test nats" not in outcome.out
    [result] = foul("evaluate", run, "-f", "client:north-0", "-q", "--json").json
    assert result["evaluation"]["kl"] is None
    # With it, nothing needs to be said.
    assert "--method retrain" not in foul("evaluate", run, "-f", EAST, "-q").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--parts", "atacks"), "Nothing called 'atacks' can be measured"),
        (("--parts", "relern"), "Did you mean 'relearn'?"),
        (("--methods", "none,foul"), "'foul' did not run in"),
        (("--methods", "foul"), "--forget domain:east --method foul"),
        (("--methods", ","), "No model of"),
        (("--forget", "domain:north"), "has not forgotten domain:north"),
        (("--forget", "domain:north"), "It has domain:east"),
    ],
)
def test_bad_input_is_one_line(
    foul: Foul, run: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = (run / "results.json").read_bytes()
    assert message in foul("evaluate", run, "-q", *arguments).error()
    assert (run / "results.json").read_bytes() == before


def test_a_run_without_results_or_none_at_all(
    foul: Foul, finished_run: Path, tmp_path: Path
) -> None:
    line = foul("evaluate", finished_run).error()
    assert "has no results yet" in line
    assert f"foul unlearn {finished_run} --forget domain:NAME" in line
    assert "is not a run folder" in foul("evaluate", tmp_path).error()


@pytest.mark.parametrize("method", ["none", "retrain"])
def test_a_model_that_is_gone_is_named_with_the_command_that_makes_it(
    foul: Foul, run: Path, method: str
) -> None:
    (run / "models" / f"{method}-domain-east.safetensors").unlink()
    line = foul("evaluate", run, "-q").error()
    assert f"{method}-domain-east.safetensors is gone" in line
    command = f"foul unlearn {run} --forget {EAST} --method {method}"
    assert command in line
    # The command that it names does help.
    options = ["rounds=1"] if method == "retrain" else []
    assert foul(*command.split()[1:], *options, "-q").code == 0
    assert foul("evaluate", run, "-q").code == 0


def test_the_learned_model_is_gone(foul: Foul, run: Path) -> None:
    (run / "models" / "learned.safetensors").unlink()
    assert "has no model 'learned'" in foul("evaluate", run, "-q").error()


def test_figures_of_a_store_alone_cannot_be_measured(
    foul: Foul, finished_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    add_results(run / "results.json", [{"method": "none", "forget": EAST, "seed": 0, "fa": 0.5}])
    line = foul("evaluate", run, "-q").error()
    assert "No model of" in line
    assert "foul unlearn" in line


def test_forget_clients_without_test_samples(
    foul: Foul, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetting_untested(monkeypatch, "east")
    outcome = foul("evaluate", run, "-q")
    assert outcome.code == 0, outcome.err
    told = rows(outcome.out)
    assert "FA %" in told
    assert not {"MIA %", "MIA AUC", "forget test %", "loss"} & set(told)
    assert "Membership attacks" not in outcome.out
    # The other tables show a dash.
    unlearned = foul("unlearn", run, "-f", EAST, "-m", "continue", "rounds=1", "-q")
    assert unlearned.code == 0, unlearned.err
    assert rows(unlearned.out)["continue"][3:5] == ["-", "-"]


def test_the_whole_story_without_test_samples(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetting_untested(monkeypatch, "east")
    arguments = ("run", small, "learning.rounds=1", "-m", "none,retrain", "-o", tmp_path / "out")
    outcome = foul(*arguments, "-q")
    assert outcome.code == 0, outcome.err
    told = rows(outcome.out)
    assert [told[name][3] for name in ("learned", "retrain")] == ["-", "-"]
    assert told["retrain"][-1] == "0.0"
