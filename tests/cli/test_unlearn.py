import json
import re
import shutil
from pathlib import Path

import pytest
from small_runs import Crash, StopAfter, small_config

from foul import RunFolder, learn
from foul.unlearning.methods import METHODS

from .conftest import Foul

SHORT = ("rounds=1", "extra=0", "standin_rounds=1", "batch_size=8")


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A run of one's own that has learned."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def test_a_domain_is_forgotten(foul: Foul, run: Path) -> None:
    before = (run / "models" / "learned.safetensors").read_bytes()
    outcome = foul("unlearn", run, "--forget", "domain:east", *SHORT)
    assert outcome.code == 0, outcome.err
    for column in ("FA %", "RA %", "TA %", "MIA AUC", "rounds", "bytes"):
        assert column in outcome.out
    reason = r"foul stopped: forget accuracy 0\.\d+, target 0\.\d+, after 1 rounds\. Model: "
    assert re.search(reason, outcome.out)
    assert (run / "models" / "foul-domain-east.safetensors").is_file()
    assert (run / "models" / "learned.safetensors").read_bytes() == before


def test_the_table_compares_the_methods_of_one_request(foul: Foul, run: Path) -> None:
    foul("unlearn", run, "-f", "client:east-1", "-m", "none", "-q")
    foul("unlearn", run, "-f", "domain:east", "-m", "none", "-q")
    outcome = foul("unlearn", run, "-f", "domain:east", "-m", "continue", "rounds=1", "-q")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    words = outcome.out.split()
    # In the table; `continue` also says why it stopped.
    assert words.count("none") == 1
    assert words.count("continue") == 2


def test_json_is_the_entry_of_results(foul: Foul, run: Path) -> None:
    result = foul("unlearn", run, "-f", "domain:east", "--json", *SHORT).json
    assert [result] == json.loads((run / "results.json").read_text())
    assert {"method", "fa", "ra", "ta", "mia_auc", "rounds", "bytes", "flops", "seconds"} <= set(
        result
    )


def test_progress_shows_what_is_retained_and_forgotten(foul: Foul, run: Path) -> None:
    outcome = foul("unlearn", run, "-f", "domain:east", *SHORT)
    assert "retain validation" in outcome.err
    assert ", forget " in outcome.err


def test_methods_say_what_they_do_and_need(foul: Foul) -> None:
    outcome = foul("methods")
    assert outcome.code == 0
    for name in METHODS:
        assert name in outcome.out
    assert "forget online" in outcome.out
    assert "nothing special" in outcome.out
    listed = foul("methods", "--json").json
    assert list(listed) == list(METHODS)
    assert listed["foul"]["requirements"]["l2u"] is True
    assert listed["foul-paper"]["options"]["kappa"] == 0.5
    assert all(entry["idea"] for entry in listed.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--forget", "domain:eest"), "Did you mean 'east'?"),
        (("--forget", "client:east-00"), "There is no client 'east-00'"),
        (("--forget", "domain:north,east"), "forgets all 4 clients"),
        (("--forget", "domain:"), "forgets nobody"),
        (("--forget", "east"), "domain:NAME or client:ID"),
        ((), "domain:NAME or client:ID"),
        (("--forget", "domain:east", "-m", "retrian"), "Did you mean 'retrain'?"),
        (("--forget", "domain:east", "kapa=1"), "Did you mean 'kappa'?"),
        (("--forget", "domain:east", "kappa=-1"), "greater than or equal to 0"),
        (("--forget", "domain:east", "kappa"), "is not key=value"),
    ],
)
def test_bad_input_is_one_line(
    foul: Foul, finished_run: Path, arguments: tuple[str, ...], message: str
) -> None:
    files = sorted(finished_run.rglob("*"))
    assert message in foul("unlearn", finished_run, *arguments).error()
    assert sorted(finished_run.rglob("*")) == files


def test_what_is_not_a_learned_run(foul: Foul, tmp_path: Path) -> None:
    assert "is not a run folder" in foul("unlearn", tmp_path, "-f", "domain:east").error()
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "early", observer=StopAfter(1))
    early = foul("unlearn", tmp_path / "early", "-f", "domain:east").error()
    assert "has no model 'learned'" in early
    assert "--resume" in early


def test_a_model_of_another_kind(foul: Foul, tmp_path: Path) -> None:
    config = small_config(learning__rounds=1, learning__objective="supervised")
    run = learn(config, tmp_path / "run").path
    line = foul("unlearn", run, "-f", "domain:east").error()
    assert "needs a model trained with learning.objective=l2u" in line
    assert "none, continue, retrain" in line
    assert RunFolder.open(run).learned()
