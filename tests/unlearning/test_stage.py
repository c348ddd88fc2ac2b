import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import changed_parts, same_bits
from small_runs import Crash, StopAfter, forgetting_untested, small_config

from foul import Observer, RunFolder, UserError, learn
from foul.client import worker as worker_module
from foul.client.context import Task, TaskContext
from foul.client.worker import TASKS
from foul.evaluation.time_to_forget import recovery, time_to_forget
from foul.federation.build import opened
from foul.federation.federation import QuorumError
from foul.federation.messages import Numbers, Tensors
from foul.runs.checkpoint import load_tensors
from foul.runs.results import read_results
from foul.unlearning import Case, Foul, MethodState, Retrain
from foul.unlearning.saved import label_of
from foul.unlearning.stage import unlearn

MakeRun = Callable[..., RunFolder]
SHORT = {
    "foul": ["rounds=2", "extra=0", "delta=1", "batch_size=8"],
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
    assert listed == read_results(run.results_file) == [result]
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
    listed = read_results(run.results_file)
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
    assert read_results(broken.results_file) == []
    assert not list(broken.models.glob(f"{method}-*"))
    result = unlearn(broken.path, "domain:east", method, SHORT[method], counting)
    assert counting.rounds == [2]
    name = f"{method}-domain-east"
    assert same_bits(broken.load_model(name)[0], whole.load_model(name)[0])
    for key in ("fa", "ra", "ta", "mia_auc", "rounds", "flops", "stopped"):
        assert result[key] == expected[key]
    # Resumed, FOUL asks each client once whether it has what it was sent; and the JSON of clients'
    # losses may differ by digits.
    asked = 4 * 150 if method.startswith("foul") else 0
    assert abs(result["bytes"] - expected["bytes"]) <= asked + 1e-3 * expected["bytes"]


def test_a_first_round_that_is_killed_does_not_lose_what_the_start_cost(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    run = make_run()
    with monkeypatch.context() as patch:
        patch.setattr(Foul, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    resumed = unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    shutil.rmtree(run.path / "features")
    for place in ("unlearning", "models"):
        (run.path / place / "foul-domain-east.safetensors").unlink()
    whole = unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    assert resumed["flops"] == whole["flops"]
    # Clients are asked whether they still have what they were sent.
    assert 0 < resumed["bytes"] - whole["bytes"] < 1000


def test_rounds_that_are_added_are_told(make_run: MakeRun) -> None:
    stages: list[tuple[int, int]] = []

    class Told(Observer):
        def on_stage(self, stage: str, rounds: int, done: int) -> None:
            stages.append((rounds, done))

    # A rate that spoils the model: retain clients are behind when the planned rounds are done.
    options = ["rounds=2", "extra=1", "unfit=100", "chance=0", "rate=5", "delta=1", "batch_size=8"]
    result = unlearn(make_run().path, "client:east-0", "foul", options, observer=Told())
    assert stages == [(2, 0), (3, 2)]
    assert result["rounds"] == 3


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
    assert read_results(run.results_file) == []
    # There is no --resume here: the same call goes on.
    assert "--resume" not in str(caught.value)
    assert "once more" in str(caught.value)
    # Without them it goes on with a method that needs none of them.
    assert unlearn(run.path, "domain:east", "retrain", ["rounds=1"])["rounds"] == 1


def test_results_that_are_not_json_are_named(make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "results.json").write_text("[{")
    with pytest.raises(UserError, match=r"results\.json is not valid JSON"):
        read_results(run.results_file)


def test_the_saved_state_is_a_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    unlearn(run.path, "domain:east", "foul", SHORT["foul"])
    tensors, numbers = load_tensors(run.path / "unlearning" / "foul-domain-east.safetensors")
    assert numbers["round"] == 2
    final, _ = run.load_model("foul-domain-east")
    assert all(torch.equal(tensors[f"model.{name}"], final[name]) for name in final)


def test_a_method_that_stops_early_is_saved_like_any_other(make_run: MakeRun) -> None:
    run = make_run()
    options = ["rounds=9", "batch_size=8", "control=false", "delta=0", "rate=5", "unfit=100"]
    result = unlearn(run.path, "client:east-0", "foul", options)
    assert result["rounds"] < 9
    assert run.load_model("foul-client-east-0")[1]["round"] == result["rounds"]


# Forget clients that have left


@pytest.fixture(scope="module")
def keeping_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned and kept every client's last update; do not change it."""
    config = small_config(learning__rounds=2, federation__keep_deltas=True)
    return learn(config, tmp_path_factory.mktemp("keeping") / "learned").path


def test_clients_that_left_are_forgotten_by_their_last_updates(
    keeping_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.open(Path(shutil.copytree(keeping_run, tmp_path / "run")))
    worked: set[tuple[str, str]] = set()

    def noted(name: str) -> Task:
        def perform(context: TaskContext) -> tuple[Tensors, Numbers]:
            worked.add((name, context.data.domain))
            return TASKS[name](context)

        return perform

    tasks = {name: noted(name) for name in TASKS}
    monkeypatch.setattr(worker_module.Worker.__init__, "__defaults__", (None, tasks, None))
    options = [*SHORT["foul"], "departed=true"]
    result = unlearn(run.path, "domain:east", "foul", options)
    # Those who left are asked by the figures alone, which measure what was forgotten.
    training = {pair for pair in worked if pair[0] in ("freeze", "unlearn", "probe", "learn")}
    assert training == {("freeze", "north"), ("unlearn", "north")}
    assert (result["rounds"], result["stopped"]) == (2, "all 2 rounds done")
    learned, _ = run.load_model()
    tensors, _ = run.load_model("foul-domain-east")
    assert changed_parts(learned, tensors) == {"V", "head"}
    weights = result["records"][0]["matching"]["weights"]
    assert weights["east-0"] + weights["east-1"] < 0
    # It goes on without them when interrupted, too.
    other = RunFolder.open(Path(shutil.copytree(keeping_run, tmp_path / "other")))
    with pytest.raises(Crash):
        unlearn(other.path, "domain:east", "foul", options, StopAfter(1))
    unlearn(other.path, "domain:east", "foul", options)
    assert same_bits(other.load_model("foul-domain-east")[0], tensors)


@pytest.mark.parametrize("left", ["domain:east", "client:east-1"])
def test_without_stored_updates_it_says_whose_and_leaves_nothing(
    make_run: MakeRun, left: str
) -> None:
    run = make_run()
    files = sorted(run.path.rglob("*"))
    names = "east-0, east-1" if left.startswith("domain") else "east-1"
    with pytest.raises(
        UserError, match=rf"last updates of {names}, which .*federation\.keep_deltas=true"
    ):
        unlearn(run.path, left, "foul", ["departed=true"])
    assert sorted(run.path.rglob("*")) == files


def test_one_stored_update_is_missing(keeping_run: Path, tmp_path: Path) -> None:
    run = RunFolder.open(Path(shutil.copytree(keeping_run, tmp_path / "run")))
    (run.deltas / "east-1.safetensors").unlink()
    with pytest.raises(UserError, match="last updates of east-1, which"):
        unlearn(run.path, "domain:east", "foul", ["departed=true"])
    short = ["rounds=1", "batch_size=8", "departed=true"]
    assert unlearn(run.path, "client:east-0", "foul", short)["rounds"] == 1


# What is measured at the end and on the way


@pytest.mark.parametrize("method", SHORT)
def test_what_was_measured_is_kept_and_agrees_with_the_results(
    make_run: MakeRun, method: str
) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", method, SHORT[method])
    assert label_of(method, "domain:east") == f"{method}-domain-east"
    about = json.loads((run.path / "evaluation" / f"{method}-domain-east.json").read_text())
    assert about == run.load_evaluation(f"{method}-domain-east")
    for key in ("method", "forget", "identity"):
        assert about[key] == result[key]
    loss = about["attacks"]["loss"]
    assert (result["mia_auc"], result["mia_low"]) == (loss["auc"], loss["auc_low"])
    assert (result["mia_accuracy"], result["mia_tpr_1"]) == (loss["accuracy"], loss["tpr_1"])
    assert result["k_probe"] == about["probes"]["K"]["labels"]
    assert result["v_probe"] == about["probes"]["V"]["labels"]
    domains = about["accuracy"]["domains"]
    assert domains["east"]["train"]["accuracy"] == result["fa"]
    assert domains["north"]["train"]["accuracy"] == result["ra"]
    assert domains["east"]["test"]["accuracy"] == result["forget_test"]
    assert about["backdoor"] is result["backdoor"] is None


@pytest.mark.parametrize("method", ["foul", "retrain", "none"])
def test_time_on_the_clock_and_disk(make_run: MakeRun, method: str) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", method, SHORT[method])
    state = run.path / "unlearning" / f"{method}-domain-east.safetensors"
    kept = sum(f.stat().st_size for f in (run.path / "features").rglob("*") if f.is_file())
    if method == "none":
        assert (result["disk"], state.exists(), kept) == (0, False, 0)
        assert result["wall_seconds"] < 0.1
        return
    # FOUL also needs what clients keep of the frozen parts.
    assert (kept > 0) == (method == "foul")
    assert result["disk"] == state.stat().st_size + kept
    # Clients work one after the other here, and the clock counts the server, too.
    assert result["wall_seconds"] > 0.9 * result["seconds"]


class Slow(Observer):
    """Takes a while after each round, which is nobody's cost."""

    def on_round(self, record: dict[str, Any]) -> None:
        time.sleep(2.5)


def test_a_resumed_clock_goes_on_and_stands_still_between(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, step = make_run(), Retrain.step

    def slow(self: Retrain, case: Case, state: MethodState) -> dict[str, Any]:
        time.sleep(0.3)
        return step(self, case, state)

    monkeypatch.setattr(Retrain, "step", slow)
    with pytest.raises(Crash):
        unlearn(run.path, "domain:east", "retrain", ["rounds=2"], StopAfter(1))
    result = unlearn(run.path, "domain:east", "retrain", ["rounds=2"], Slow())
    # Two rounds of 0.3 s and some work; neither the crash nor the waiting after rounds.
    assert 0.6 < result["wall_seconds"] < 0.6 + result["seconds"] + 2


def test_a_tracked_curve_has_angles_and_speeds(make_run: MakeRun) -> None:
    run = make_run()
    result = unlearn(run.path, "domain:east", "continue", SHORT["continue"], track=True)
    start, *rounds = result["curve"]
    assert [point["round"] for point in result["curve"]] == [0, 1, 2]
    assert "angle_retain" not in start
    for point in rounds:
        assert -1 <= point["angle_forget"] <= 1
        assert -1 <= point["angle_retain"] <= 1
    # Learning from the retain clients goes where they would go.
    assert rounds[0]["angle_retain"] > 0
    assert result["t2f"] == time_to_forget(result["curve"])
    assert result["recovery"] == recovery(result["curve"])
    assert result["t2f"] is not None
    assert result["curve"][-1]["fa"] == result["fa"]


@pytest.mark.parametrize("method", ["foul", "foul-paper"])
def test_angles_of_foul_are_measured(make_run: MakeRun, method: str) -> None:
    run = make_run()
    curve = unlearn(run.path, "domain:east", method, SHORT[method], track=True)["curve"]
    for point in curve[1:]:
        assert -1 <= point["angle_forget"] <= 1
        assert -1 <= point["angle_retain"] <= 1


def test_tracking_changes_nothing_and_costs_the_method_nothing(make_run: MakeRun) -> None:
    one, other = make_run("one"), make_run("other")
    plain = unlearn(one.path, "domain:east", "continue", SHORT["continue"])
    tracked = unlearn(other.path, "domain:east", "continue", SHORT["continue"], track=True)
    name = "continue-domain-east"
    assert same_bits(one.load_model(name)[0], other.load_model(name)[0])
    for key in ("flops", "fa", "mia_auc", "mia_accuracy", "k_probe", "v_probe"):
        assert plain[key] == tracked[key]
    assert (plain["curve"], plain["t2f"], plain["recovery"]) == ([], None, None)


def test_a_curve_that_began_late_tells_no_speed(make_run: MakeRun) -> None:
    run = make_run()
    with pytest.raises(Crash):
        unlearn(run.path, "domain:east", "continue", ["rounds=3"], StopAfter(1))
    result = unlearn(run.path, "domain:east", "continue", ["rounds=3"], track=True)
    assert [point["round"] for point in result["curve"]] == [2, 3]
    assert (result["t2f"], result["recovery"]) == (None, None)


def test_clients_without_test_samples_can_be_forgotten(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    forgetting_untested(monkeypatch, "east")
    result = unlearn(run.path, "domain:east", "continue", ["rounds=1"], track=True)
    for key in ("mia_auc", "mia_low", "mia_high", "mia_accuracy", "mia_tpr_1", "forget_test"):
        assert result[key] is None
    assert run.load_evaluation("continue-domain-east")["attacks"] == {}
    assert read_results(run.results_file) == [result]


def test_retraining_again_is_a_model_of_its_own(make_run: MakeRun) -> None:
    run = make_run()
    once, again = (
        unlearn(run.path, "domain:east", name, ["rounds=1"])
        for name in ("retrain", "retrain-again")
    )
    assert (once["model"], again["model"]) == (
        *("models/retrain-domain-east.safetensors", "models/retrain-again-domain-east.safetensors"),
    )
    models = [run.load_model(f"{name}-domain-east")[0] for name in ("retrain", "retrain-again")]
    assert not same_bits(*models)
    assert [r["options"]["again"] for r in read_results(run.results_file)] == [0, 1]


# Clients that were erased before


def test_an_erased_client_takes_no_part_in_anything(make_run: MakeRun) -> None:
    run = make_run()
    run.write_erased(["north-0"])
    result = unlearn(run.path, "client:east-0", "retrain", ["rounds=1"])
    assert set(result["records"][0]["costs"]) == {"north-1", "east-1"}
    measured = run.load_evaluation("retrain-client-east-0")["accuracy"]["clients"]
    assert set(measured) == {"north-1", "east-0", "east-1"}


def test_an_erased_client_cannot_be_forgotten_once_more(make_run: MakeRun) -> None:
    run = make_run()
    run.write_erased(["north-0"])
    with pytest.raises(UserError, match=r"'north-0' was erased .*foul erase readmit .*north-0"):
        unlearn(run.path, "client:north-0", "retrain", ["rounds=1"])


def test_another_model_or_other_clients_are_another_case(make_run: MakeRun) -> None:
    run, short = make_run(), ["rounds=1"]
    first = unlearn(run.path, "client:east-0", "retrain", short)
    assert unlearn(run.path, "client:east-0", "retrain", short) == first
    run.write_erased(["north-0"])
    second = unlearn(run.path, "client:east-0", "retrain", short)
    model, facts = run.load_model(label_of("retrain", "client:east-0"))
    run.save_model("learned", model, {**facts, "classes": []})
    third = unlearn(run.path, "client:east-0", "retrain", short)
    assert len({result["identity"] for result in (first, second, third)}) == 3


def test_a_model_that_is_not_measured_is_saved_with_its_costs_alone(make_run: MakeRun) -> None:
    run = make_run()
    plain = unlearn(run.path, "client:east-0", "retrain", ["rounds=1"], measured=False)
    assert run.load_model(label_of("retrain", "client:east-0"))
    assert plain["bytes"] > 0
    assert "fa" not in plain
    assert read_results(run.results_file) == []
    assert not run.evaluation.exists()
    assert unlearn(run.path, "client:east-0", "retrain", ["rounds=1"])["fa"] is not None


def test_an_open_federation_does_not_let_an_erased_client_in(make_run: MakeRun) -> None:
    run = make_run()
    run.write_erased(["north-0"])
    with (
        opened(run.config()) as setting,
        pytest.raises(UserError, match=r"north-0 must take no part"),
    ):
        unlearn(run.path, "client:east-0", "retrain", ["rounds=1"], setting=setting)
