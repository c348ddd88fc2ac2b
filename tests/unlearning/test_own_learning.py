"""Learning stages that methods have of their own, as part of a run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factories import same_bits
from small_runs import Crash, small_config

from foul import Observer, RunFolder, learn
from foul.federation.messages import Tensors, take_group
from foul.runs.checkpoint import load_tensors
from foul.runs.results import read_results
from foul.unlearning.stage import unlearn

MakeRun = Callable[..., RunFolder]
FATS = ["draws=3", "steps=1", "batch_size=8"]
FFMU = ["epochs=0.5", "batch_size=8"]
LEARNING = {"fats": "fats-learning", "ffmu": "ffmu-learning", "ffmu-adapted": "ffmu-learning"}
OPTIONS = {"fats": FATS, "ffmu": FFMU, "ffmu-adapted": [*FFMU, "rounds=2"]}


@pytest.fixture(scope="module")
def learned_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned; do not change it."""
    config = small_config(learning__rounds=3)
    return learn(config, tmp_path_factory.mktemp("own") / "learned").path


@pytest.fixture
def make_run(learned_run: Path, tmp_path: Path) -> MakeRun:
    def make(name: str = "run") -> RunFolder:
        return RunFolder.open(Path(shutil.copytree(learned_run, tmp_path / name)))

    return make


class Watching(Observer):
    """Notes the rounds of each stage; stops after one of them, as a crash would."""

    def __init__(self, stop: tuple[str, int] | None = None) -> None:
        self.rounds: list[tuple[str, int]] = []
        self._stop = stop

    def on_round(self, record: dict[str, Any]) -> None:
        self.rounds.append((record["stage"], record["round"]))
        if self.rounds[-1] == self._stop:
            raise Crash

    def of(self, stage: str) -> list[int]:
        return [number for name, number in self.rounds if name == stage]


def saved(run: RunFolder, name: str) -> tuple[Tensors, dict[str, Any]]:
    return load_tensors(run.path / "unlearning" / f"{name}.safetensors")


@pytest.mark.parametrize("method", OPTIONS)
def test_it_is_run_once_for_several_requests(make_run: MakeRun, method: str) -> None:
    run, one, other = make_run(), Watching(), Watching()
    unlearn(run.path, "domain:east", method, OPTIONS[method], one)
    assert one.of(LEARNING[method]) == [1, 2, 3]
    before = saved(run, LEARNING[method])
    unlearn(run.path, "client:north-0", method, OPTIONS[method], other)
    assert other.of(LEARNING[method]) == []
    assert same_bits(saved(run, LEARNING[method])[0], before[0])


def test_methods_that_learn_alike_share_it(make_run: MakeRun) -> None:
    run, watching = make_run(), Watching()
    faithful = unlearn(run.path, "domain:east", "ffmu", OPTIONS["ffmu"])
    adapted = unlearn(run.path, "domain:east", "ffmu-adapted", OPTIONS["ffmu-adapted"], watching)
    assert watching.rounds == [("ffmu-adapted", 1), ("ffmu-adapted", 2)]
    assert faithful["own_learning"] == adapted["own_learning"]


@pytest.mark.parametrize("stop", [("fats-learning", 1), ("fats-learning", 3), ("fats", 1)])
def test_killed_and_resumed_it_ends_with_the_same_bits(
    make_run: MakeRun, stop: tuple[str, int]
) -> None:
    one, other = make_run("one"), make_run("other")
    undisturbed = unlearn(one.path, "domain:east", "fats", FATS)
    watching, again = Watching(stop), Watching()
    with pytest.raises(Crash):
        unlearn(other.path, "domain:east", "fats", FATS, watching)
    resumed = unlearn(other.path, "domain:east", "fats", FATS, again)
    # No round is run twice.
    assert watching.of("fats-learning") + again.of("fats-learning") == [1, 2, 3]
    for name in ("fats-learning", "fats-domain-east"):
        assert same_bits(saved(one, name)[0], saved(other, name)[0])
    for key in ("fa", "ra", "ta", "bytes", "flops", "rounds", "own_learning"):
        assert undisturbed[key] == resumed[key]


def test_other_options_learn_again(make_run: MakeRun) -> None:
    run, watching = make_run(), Watching()
    unlearn(run.path, "domain:east", "fats", FATS)
    first = saved(run, "fats-learning")[0]
    unlearn(run.path, "domain:east", "fats", [*FATS, "rate=0.01"], watching)
    assert watching.of("fats-learning") == [1, 2, 3]
    assert not same_bits(saved(run, "fats-learning")[0], first)


def test_options_of_forgetting_alone_do_not_learn_again(make_run: MakeRun) -> None:
    run, watching = make_run(), Watching()
    unlearn(run.path, "domain:east", "ffmu-adapted", [*FFMU, "rounds=1"])
    unlearn(run.path, "domain:east", "ffmu-adapted", [*FFMU, "rounds=2", "share=1"], watching)
    assert watching.rounds == [("ffmu-adapted", 1), ("ffmu-adapted", 2)]


def test_what_was_served_is_answered_without_learning(make_run: MakeRun) -> None:
    run, watching = make_run(), Watching()
    result = unlearn(run.path, "domain:east", "fats", FATS)
    unlearn(run.path, "client:north-0", "fats", [*FATS, "rate=0.01"])
    # The stage on disk is by now that of other options.
    assert unlearn(run.path, "domain:east", "fats", FATS, watching) == result
    assert watching.rounds == []


@pytest.mark.parametrize("method", OPTIONS)
def test_its_costs_are_a_stage_of_their_own(make_run: MakeRun, method: str) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", method, OPTIONS[method])
    _, numbers = saved(run, LEARNING[method])
    assert set(numbers["ledger"]) == {LEARNING[method]}
    assert numbers["ledger"][LEARNING[method]]["flops_client"] > 0
    spent = [cost for record in numbers["records"] for cost in record["costs"].values()]
    for key in ("bytes_down", "bytes_up", "flops_client"):
        assert numbers["ledger"][LEARNING[method]][key] == sum(cost[key] for cost in spent)
        own = [cost[key] for record in result["records"] for cost in record["costs"].values()]
        assert result[key] == sum(own)
    assert (result["bytes"] == 0) == (method == "ffmu")
    # A second request pays for its own rounds alone.
    again = unlearn(run.path, "client:north-0", method, OPTIONS[method])
    own = [cost["bytes_up"] for record in again["records"] for cost in record["costs"].values()]
    assert again["bytes_up"] == sum(own)


@pytest.mark.parametrize("method", OPTIONS)
def test_its_accuracy_is_in_the_result(make_run: MakeRun, method: str) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", method, OPTIONS[method])
    own = result["own_learning"]
    assert set(own) >= {"fa", "ra", "ta"}
    assert result["learned_rounds"] == 3
    if method == "ffmu":
        assert {key: result[key] for key in own} == own
        assert "does not cover" in result["stopped"]
    assert read_results(run.results_file) == [result]
    assert json.loads(json.dumps(result)) == result
    # The run's own model had another learning stage, and stays as it is.
    tensors, _ = run.load_model()
    assert not same_bits(tensors, take_group(saved(run, LEARNING[method])[0], "model"))


def test_methods_without_one_have_no_such_figures(make_run: MakeRun) -> None:
    assert "own_learning" not in unlearn(make_run().path, "domain:east", "none")


def test_snapshots_count_as_disk(make_run: MakeRun) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", "fats", FATS)
    tensors, numbers = saved(run, "fats-learning")
    snapshots = take_group(tensors, "extra")
    kept = {name.split(".")[0] for name in snapshots}
    assert kept == {str(number) for number in numbers["numbers"]["first"].values()}
    state = run.path / "unlearning" / "fats-domain-east.safetensors"
    assert result["disk"] == state.stat().st_size + sum(t.nbytes for t in snapshots.values())


def test_a_client_never_drawn_is_served_without_a_round(make_run: MakeRun) -> None:
    run, options = make_run(), ["draws=1", "steps=1", "batch_size=8"]
    unlearn(run.path, "domain:east", "fats", options)
    tensors, numbers = saved(run, "fats-learning")
    names = {"north-0", "north-1", "east-0", "east-1"}
    unused = min(names - numbers["numbers"]["first"].keys())
    result = unlearn(run.path, f"client:{unused}", "fats", options)
    assert (result["rounds"], result["bytes"], result["flops"]) == (0, 0, 0)
    model, _ = run.load_model(f"fats-client-{unused}")
    assert same_bits(model, take_group(tensors, "model"))
