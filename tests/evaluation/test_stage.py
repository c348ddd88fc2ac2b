import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import forgetting_untested, small_config

from foul import Observer, RunFolder, UserError, learn
from foul.client import worker as worker_module
from foul.client.context import Task, TaskContext
from foul.client.worker import TASKS
from foul.evaluation import stage as module
from foul.evaluation.divergence import divergence
from foul.evaluation.stage import evaluate_run
from foul.federation.build import build
from foul.federation.messages import Numbers, Tensors
from foul.runs.checkpoint import load_tensors
from foul.runs.results import add_results, read_results
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import unlearn

EAST = "domain:east"
METHODS = ("none", "retrain", "retrain-again")
KL = ("kl_forget", "kl_retain", "kl_test")


@pytest.fixture(scope="module")
def measured_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with results of three methods; do not change it."""
    out = tmp_path_factory.mktemp("evaluation") / "run"
    run = learn(small_config(learning__rounds=1), out).path
    for method in METHODS:
        unlearn(run, EAST, method)
    return run


@pytest.fixture
def run(measured_run: Path, tmp_path: Path) -> RunFolder:
    return RunFolder.open(Path(shutil.copytree(measured_run, tmp_path / "run")))


def listed(run: RunFolder) -> dict[str, dict[str, Any]]:
    results = read_results(run.results_file)
    return {result["method"]: result for result in results if result["forget"] == EAST}


def measured(run: RunFolder, method: str) -> dict[str, Any]:
    return run.load_evaluation(f"{method}-domain-east")


def asked_tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that clients perform from now on."""
    asked: list[str] = []

    def noted(name: str) -> Task:
        def perform(context: TaskContext) -> tuple[Tensors, Numbers]:
            asked.append(name)
            return TASKS[name](context)

        return perform

    tasks = {name: noted(name) for name in TASKS}
    monkeypatch.setattr(worker_module.Worker.__init__, "__defaults__", (None, tasks, None))
    return asked


def test_figures_from_checkpoints_are_those_of_the_run(run: RunFolder) -> None:
    before, about = listed(run), {method: measured(run, method) for method in METHODS}
    results = evaluate_run(run.path)
    assert [result["method"] for result in results] == list(METHODS)
    assert {result["method"]: result for result in results} == listed(run)
    for method in METHODS:
        # All that was there is there, with the same figures; divergence is new.
        assert listed(run)[method] == before[method] | {k: listed(run)[method][k] for k in KL}
        now = measured(run, method)
        assert now == about[method] | {k: now[k] for k in ("kl", "kl_floor", "kl_to")}
        assert {f"kl_{kind}": value for kind, value in now["kl"].items()} == {
            key: listed(run)[method][key] for key in KL
        }


def test_divergence_is_from_the_retrain_of_the_same_request(run: RunFolder) -> None:
    unlearn(run.path, "client:east-0", "retrain")
    evaluate_run(run.path, EAST, parts=["kl"])
    setting = build(run.config())
    request = ForgetRequest.parse(EAST, setting.federation.clients)
    models = {method: run.load_model(f"{method}-domain-east")[0] for method in METHODS}

    def kl(method: str) -> dict[str, float | None]:
        return divergence(setting.federation, models[method], models["retrain"], request)

    for method in METHODS:
        assert measured(run, method)["kl"] == kl(method)
        assert measured(run, method)["kl_floor"] == kl("retrain-again")
    assert [listed(run)["retrain"][key] for key in KL] == [0, 0, 0]
    assert all(listed(run)["retrain-again"][key] > 0 for key in KL)


def test_twice_is_the_same(run: RunFolder) -> None:
    evaluate_run(run.path)
    before = listed(run), {method: measured(run, method) for method in METHODS}
    pictures = (run.evaluation / "pictures.safetensors").read_bytes()
    evaluate_run(run.path)
    assert (listed(run), {method: measured(run, method) for method in METHODS}) == before
    assert (run.evaluation / "pictures.safetensors").read_bytes() == pictures


def test_pictures_are_those_of_the_learned_model(run: RunFolder) -> None:
    evaluate_run(run.path, methods=["none"], parts=["pictures"])
    tensors, names = load_tensors(run.evaluation / "pictures.safetensors")
    assert names["domains"] == ["east", "north"]
    assert len(names["classes"]) == 3
    assert len(tensors["original"]) == len(tensors["both"]) == 6
    assert tensors["k_map"].shape == (len(tensors["class"]), 2)
    assert set(tensors["domain"].tolist()) == {0, 1}
    assert "kl_forget" not in listed(run)["none"]


def test_what_is_known_is_not_measured_again(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate_run(run.path)
    asked = asked_tasks(monkeypatch)
    assert evaluate_run(run.path, missing_only=True) == first
    assert asked == []
    # The test would notice.
    evaluate_run(run.path, methods=["none"], parts=["kl"])
    assert set(asked) == {"divergence"}


def test_only_what_is_missing_is_measured(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_tasks(monkeypatch)
    # `foul unlearn` has measured how well it was forgotten.
    evaluate_run(run.path, missing_only=True)
    assert set(asked) == {"divergence", "reconstruct", "latents"}
    asked.clear()
    (run.evaluation / "none-domain-east.json").unlink()
    evaluate_run(run.path, missing_only=True)
    assert {"outputs", "moments", "evaluate", "divergence"} <= set(asked)


@pytest.mark.parametrize("changed", ["retrain", "retrain-again"])
def test_another_retrain_makes_another_divergence(
    run: RunFolder, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate_run(run.path, parts=["kl"])
    before = measured(run, "none")
    unlearn(run.path, EAST, changed, ["rounds=2"])
    evaluate_run(run.path, parts=["kl"], missing_only=True)
    now = measured(run, "none")
    assert now["kl_floor"] != before["kl_floor"]
    assert (now["kl"] != before["kl"]) == (changed == "retrain")
    assert listed(run)["none"]["kl_test"] == now["kl"]["test"]


def test_without_retrain_there_is_no_divergence_until_it_ran(run: RunFolder) -> None:
    unlearn(run.path, "client:east-1", "none")
    [result] = evaluate_run(run.path, "client:east-1")
    assert not set(KL) & {key for key, value in result.items() if value is not None}
    about = run.load_evaluation("none-client-east-1")
    assert (about["kl"], about["kl_floor"]) == (None, None)
    unlearn(run.path, "client:east-1", "retrain")
    none, _ = evaluate_run(run.path, "client:east-1", missing_only=True)
    assert none["kl_test"] > 0
    assert run.load_evaluation("none-client-east-1")["kl_floor"] is None


def test_relearning_is_measured_when_it_is_asked_for(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_tasks(monkeypatch)
    results = evaluate_run(run.path, methods=["none", "retrain"], parts=["relearn"])
    # The learned model has not forgotten anything.
    assert results[0]["relearn"] == 0
    about = measured(run, "retrain")["relearn"]
    assert about["rounds"] == results[1]["relearn"]
    assert about["target"] == pytest.approx(results[0]["fa"])
    assert about["curve"][0] == pytest.approx(results[1]["fa"])
    asked.clear()
    evaluate_run(run.path, methods=["none"], parts=["relearn"], missing_only=True)
    assert asked == []


class Stop(Observer):
    """Stops before the second model."""

    def on_work(self, what: str, done: int, total: int) -> None:
        if (what, done) == ("evaluating models", 1):
            raise KeyboardInterrupt


def test_stopped_half_way_it_goes_on(run: RunFolder) -> None:
    expected = evaluate_run(run.path, parts=["kl"])
    broken = RunFolder.open(Path(shutil.copytree(run.path, run.path.parent / "broken")))
    for method in METHODS:
        unlearn_kl(broken, method)
    with pytest.raises(KeyboardInterrupt):
        evaluate_run(broken.path, parts=["kl"], observer=Stop())
    assert ["kl_test" in listed(broken)[method] for method in METHODS] == [True, False, False]
    evaluate_run(broken.path, parts=["kl"], missing_only=True)
    assert listed(broken) == {result["method"]: result for result in expected}


def unlearn_kl(run: RunFolder, method: str) -> None:
    """Take the divergence away from everything that knows it."""
    file = run.evaluation / f"{method}-domain-east.json"
    about = {k: v for k, v in json.loads(file.read_text()).items() if not k.startswith("kl")}
    file.write_text(json.dumps(about))
    results = [
        {k: v for k, v in r.items() if r["method"] != method or not k.startswith("kl_")}
        for r in read_results(run.results_file)
    ]
    run.results_file.write_text(json.dumps(results))


def test_results_of_a_store_have_no_model_here(run: RunFolder) -> None:
    stored = {"method": "continue", "forget": EAST, "seed": 0, "fa": 0.5, "options": {}}
    add_results(run.results_file, [stored])
    results = evaluate_run(run.path, parts=["kl"])
    assert [result["method"] for result in results] == list(METHODS)
    assert listed(run)["continue"] == stored
    with pytest.raises(UserError, match=r"foul unlearn .* --forget domain:east --method continue"):
        evaluate_run(run.path, methods=["continue"])


def test_a_retrain_of_a_store_cannot_be_compared_with(run: RunFolder) -> None:
    results = [
        {k: v for k, v in result.items() if k != "model" or result["method"] != "retrain"}
        for result in read_results(run.results_file)
    ]
    run.results_file.write_text(json.dumps(results))
    assert [r.get("kl_test") for r in evaluate_run(run.path, parts=["kl"])] == [None, None]


def test_a_request_typed_otherwise_is_found(run: RunFolder) -> None:
    told = evaluate_run(run.path, "domain: East", parts=["kl"])
    assert {result["forget"] for result in told} == {"domain:east"}


def test_an_older_request_is_compared_with_the_retrain_of_its_own_name(run: RunFolder) -> None:
    old = "client:east-1,east-0"
    results = [result | {"forget": old} for result in read_results(run.results_file)]
    run.results_file.write_text(json.dumps(results))
    told = evaluate_run(run.path, old, parts=["kl"])
    assert {result["forget"] for result in told} == {old}
    assert all(result["kl_test"] is not None for result in told)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"parts": ["kll"]}, "Nothing called 'kll' can be measured.*Did you mean 'kl'"),
        ({"methods": ["foul"]}, r"'foul' did not run in .*--forget domain:east --method foul"),
        ({"forget": "domain:north"}, "has not forgotten domain:north.*It has domain:east"),
    ],
)
def test_what_cannot_be_measured_is_said_before_any_work(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], message: str
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("built")

    monkeypatch.setattr(module, "opened", never)
    with pytest.raises(UserError, match=message):
        evaluate_run(run.path, **values)


def test_other_data_is_refused(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = run.facts()
    facts["clients"][0]["samples"]["train"] += 1
    run.write_facts(facts)
    with pytest.raises(UserError, match=r"has changed since it began \(clients differ\)"):
        evaluate_run(run.path)


def test_clients_without_test_samples(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetting_untested(monkeypatch, "east")
    for result in evaluate_run(run.path):
        assert result["mia_auc"] is result["mia_accuracy"] is result["forget_test"] is None
        assert measured(run, result["method"])["attacks"] == {}
        assert result["kl_test"] is not None
