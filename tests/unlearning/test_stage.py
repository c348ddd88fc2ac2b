import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import changed_parts, same_bits
from small_runs import Crash, StopAfter, small_config

from foul import Observer, RunFolder, UserError, learn
from foul.client import worker as worker_module
from foul.client.context import TaskContext
from foul.client.worker import TASKS
from foul.federation.federation import QuorumError
from foul.federation.messages import Numbers, Tensors
from foul.runs.checkpoint import load_tensors
from foul.unlearning.stage import results, unlearn

MakeRun = Callable[..., RunFolder]
SHORT = {
    "foul": ["rounds=2", "delta=1", "batch_size=8"],
    "foul-paper": ["rounds=2", "batch_size=8"],
    "foul-printed": ["rounds=2", "batch_size=8"],
    "retrain": ["rounds=2"],
    "continue": ["rounds=2"],
    "none": [],
}


@pytest.fixture(scope="session")
def learned_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned; do not change it."""
    config = small_config(learning__rounds=2)
    return learn(config, tmp_path_factory.mktemp("unlearning") / "learned").path


@pytest.fixture
def make_run(learned_run: Path, tmp_path: Path) -> MakeRun:
    def make(name: str = "run") -> RunFolder:
        return RunFolder.open(Path(shutil.copytree(learned_run, tmp_path / name)))

    return make


class Counting(Observer):
    def __init__(self) -> None:
        self.rounds: list[int] = []

    def on_round(self, record: dict[str, Any]) -> None:
        self.rounds.append(record["round"])


def break_task(
    monkeypatch: pytest.MonkeyPatch, task: str, broken: Callable[[TaskContext], None]
) -> None:
    def instead(context: TaskContext) -> tuple[Tensors, Numbers]:
        broken(context)
        return TASKS[task](context)

    tasks = {**TASKS, task: instead}
    monkeypatch.setattr(worker_module.Worker.__init__, "__defaults__", (None, tasks, None))


@pytest.mark.parametrize("method", SHORT)
def test_a_new_model_and_its_figures(make_run: MakeRun, method: str) -> None:
    run = make_run()
    before = (run.models / "learned.safetensors").read_bytes()
    result = unlearn(run.path, "domain:east", method, SHORT[method])
    assert (run.models / "learned.safetensors").read_bytes() == before
    name = f"{method}-domain-east"
    tensors, facts = run.load_model(name)
    learned, _ = run.load_model()
    assert tensors.keys() == learned.keys()
    assert result["model"] == f"models/{name}.safetensors"
    listed = json.loads((run.path / "results.json").read_text())
    assert listed == results(run) == [result]
    for key in ("fa", "ra", "ta", "mia_auc"):
        assert 0 <= result[key] <= 1
    rounds = 0 if method == "none" else 2
    assert (result["method"], result["forget"]) == (method, "domain:east")
    assert result["rounds"] == facts["round"] == len(result["records"]) == rounds
    for key in ("bytes", "flops", "seconds"):
        assert (result[key] > 0) == (method != "none")
    assert result["stopped"]
    if method == "none":
        assert same_bits(tensors, learned)
    if method.startswith("foul"):
        scope = {"V", "head"} if method == "foul" else {"V"}
        assert changed_parts(learned, tensors) == scope


def test_results_of_several_methods_are_listed_once_each(make_run: MakeRun) -> None:
    run = make_run()
    unlearn(run.path, "domain:east", "none")
    unlearn(run.path, "client:east-0", "none")
    unlearn(run.path, "domain:east", "continue", ["rounds=1"])
    again = unlearn(run.path, "domain:east", "continue", ["rounds=2"])
    listed = results(run)
    assert [(r["method"], r["forget"]) for r in listed] == [
        ("none", "domain:east"),
        ("none", "client:east-0"),
        ("continue", "domain:east"),
    ]
    assert listed[-1] == again
    # Other options are another request: it began anew.
    assert again["rounds"] == len(again["records"]) == 2


@pytest.mark.parametrize("method", ["foul", "retrain"])
def test_a_finished_one_is_not_repeated(make_run: MakeRun, method: str) -> None:
    run, counting = make_run(), Counting()
    first = unlearn(run.path, "domain:east", method, SHORT[method])
    second = unlearn(run.path, "domain:east", method, SHORT[method], counting)
    assert counting.rounds == []
    assert second == first


@pytest.mark.parametrize("method", ["foul", "foul-paper", "retrain", "continue"])
def test_interrupted_and_continued_is_the_same_bits(make_run: MakeRun, method: str) -> None:
    whole, broken, counting = make_run("whole"), make_run("broken"), Counting()
    expected = unlearn(whole.path, "domain:east", method, SHORT[method])
    with pytest.raises(Crash):
        unlearn(broken.path, "domain:east", method, SHORT[method], StopAfter(1))
    assert results(broken) == []
    assert not list(broken.models.glob(f"{method}-*"))
    result = unlearn(broken.path, "domain:east", method, SHORT[method], counting)
    assert counting.rounds == [2]
    name = f"{method}-domain-east"
    assert same_bits(broken.load_model(name)[0], whole.load_model(name)[0])
    for key in ("fa", "ra", "ta", "mia_auc", "rounds", "flops", "stopped"):
        assert result[key] == expected[key]
    # The JSON of clients' losses may differ by digits, nothing else.
    assert result["bytes"] == pytest.approx(expected["bytes"], rel=1e-3)


def test_a_run_that_still_learns_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "early", observer=StopAfter(1))
    with pytest.raises(UserError, match=r"has no model 'learned'.*--resume"):
        unlearn(tmp_path / "early", "domain:east")
    assert not (tmp_path / "early" / "results.json").exists()


@pytest.mark.parametrize(
    "change", [{"learning__objective": "supervised"}, {"model__head": "causal"}]
)
def test_a_model_foul_cannot_change_is_refused_with_what_can(
    tmp_path: Path, change: dict[str, object]
) -> None:
    run = learn(small_config(learning__rounds=1, **change), tmp_path / "run")
    files = sorted(run.path.rglob("*"))
    with pytest.raises(UserError, match="work on this model: none, continue, retrain") as caught:
        unlearn(run.path, "domain:east")
    assert str(caught.value).startswith("'foul'")
    assert sorted(run.path.rglob("*")) == files
    assert unlearn(run.path, "domain:east", "continue", ["rounds=1"])["rounds"] == 1


@pytest.mark.parametrize(
    ("forget", "method", "message"),
    [
        ("domain:eest", "foul", "no domain 'eest'.*Did you mean 'east'"),
        ("domain:east,north", "retrain", "forgets all 4 clients"),
        ("", "foul", "whom to forget"),
        ("domain:east", "fool", "no method 'fool'.*Did you mean 'foul'"),
    ],
)
def test_what_cannot_be_done_leaves_nothing(
    make_run: MakeRun, forget: str, method: str, message: str
) -> None:
    run = make_run()
    files = sorted(run.path.rglob("*"))
    with pytest.raises(UserError, match=message):
        unlearn(run.path, forget, method)
    assert sorted(run.path.rglob("*")) == files


def test_all_forget_clients_offline(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(context: TaskContext) -> None:
        if context.data.domain == "east":
            raise ConnectionError("offline")

    run = make_run()
    before = (run.models / "learned.safetensors").read_bytes()
    break_task(monkeypatch, "unlearn", away)
    with pytest.raises(QuorumError, match=r"0 of 2 clients answered.*east-0: .*offline") as caught:
        unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    assert (run.models / "learned.safetensors").read_bytes() == before
    assert [file.name for file in run.models.iterdir()] == ["learned.safetensors"]
    assert results(run) == []
    # There is no --resume here: the same call goes on.
    assert "--resume" not in str(caught.value)
    assert "once more" in str(caught.value)
    # Without them it goes on with a method that needs none of them.
    assert unlearn(run.path, "domain:east", "retrain", ["rounds=1"])["rounds"] == 1


def test_results_that_are_not_json_are_named(make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "results.json").write_text("[{")
    with pytest.raises(UserError, match=r"results\.json is not valid JSON"):
        results(run)


def test_the_saved_state_is_a_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    tensors, numbers = load_tensors(run.path / "unlearning" / "foul-domain-east.safetensors")
    assert numbers["round"] == 2
    final, _ = run.load_model("foul-domain-east")
    assert all(torch.equal(tensors[f"model.{name}"], final[name]) for name in final)


@pytest.mark.parametrize("options", [["delta=0", "rate=5"], ["target=1"]])
def test_a_method_that_stops_early_is_saved_like_any_other(
    make_run: MakeRun, options: list[str]
) -> None:
    run = make_run()
    result = unlearn(run.path, "client:east-0", "foul", ["rounds=9", "batch_size=8", *options])
    assert result["rounds"] < 9
    assert run.load_model("foul-client-east-0")[1]["round"] == result["rounds"]
