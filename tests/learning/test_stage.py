import multiprocessing
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import same_bits
from small_runs import Crash, StopAfter, learned, small_config, without_times

import foul.client.worker as worker_module
from foul import Config, Observer, RunFolder, UserError, learn
from foul.client.context import Task, TaskContext
from foul.client.worker import TASKS
from foul.federation.federation import QuorumError
from foul.federation.messages import Numbers, Reply, Request, Tensors
from foul.models import DEPLOYED, part_of
from foul.runs.checkpoint import load_tensors

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "server momentum": {"learning__server_momentum": 0.9, "learning__server_rate": 0.5},
    "participation": {"federation__participation": 0.5},
    "dropout": {"federation__dropout": 0.3, "federation__quorum": 0.01},
    "patience": {"learning__patience": 2, "learning__min_delta": 0.9, "learning__rounds": 9},
    "augmentation": {"learning__augment__crop": 0.5, "learning__augment__flip": True},
    "supervised": {"learning__objective": "supervised", "learning__evaluate_every": 1},
    "rare checkpoints": {"federation__checkpoint_every": 2, "learning__rounds": 4},
}
"""Whatever could forget something between two rounds."""


@pytest.fixture
def use_tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Task]:
    """The tasks that workers know while the test runs; change them as you like."""
    tasks = dict(TASKS)
    monkeypatch.setattr(worker_module.Worker.__init__, "__defaults__", (None, tasks, None))
    return tasks


def never_for(client: str, task: Task) -> Task:
    """The task, broken for one client."""

    def perform(context: TaskContext) -> tuple[Tensors, Numbers]:
        if context.data.id == client:
            raise OSError("the cable is out")
        return task(context)

    return perform


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return learn(small_config(), tmp_path_factory.mktemp("runs") / "undisturbed", command="foul x")


def test_a_run_holds_what_it_should(undisturbed: RunFolder) -> None:
    names = {str(f.relative_to(undisturbed.path)) for f in undisturbed.path.rglob("*.*")}
    assert names == {
        ".lock",
        "config.toml",
        "run.json",
        "rounds.jsonl",
        "summary.json",
        "checkpoints/round-00002.safetensors",
        "checkpoints/round-00003.safetensors",
        "models/learned.safetensors",
    }
    assert undisturbed.config() == small_config()
    assert undisturbed.facts()["command"] == "foul x"
    assert undisturbed.facts()["classes"] == ["bars", "checks", "disc"]
    assert [record["round"] for record in undisturbed.records()] == [1, 2, 3]


def test_the_summary_counts_every_client_and_sample(undisturbed: RunFolder) -> None:
    summary = undisturbed.summary()
    assert (summary["stage"], summary["rounds"]) == ("learned", 3)
    assert summary["accuracy"].keys() == {"train", "validation", "test"}
    for split, count in (("train", 108), ("validation", 12), ("test", 48)):
        accuracy = summary["accuracy"][split]
        assert accuracy["all"]["samples"] == count
        assert accuracy["clients"].keys() == {"east-0", "east-1", "north-0", "north-1"}
        assert accuracy["domains"].keys() == {"east", "north"}
    assert summary["costs"].keys() == {"learning", "evaluation"}


def test_the_model_is_that_of_the_last_checkpoint(undisturbed: RunFolder) -> None:
    saved = undisturbed.last_checkpoint()
    assert saved is not None
    tensors, state = undisturbed.load_model()
    assert state == {"round": 3, "classes": ["bars", "checks", "disc"]}
    assert same_bits(tensors, {n.removeprefix("model."): t for n, t in saved[0].items()})
    assert saved[1]["seed"] == 0


def test_the_same_seed_gives_the_same_bits(undisturbed: RunFolder, tmp_path: Path) -> None:
    again = learn(small_config(), tmp_path / "again")
    assert same_bits(again.load_model()[0], undisturbed.load_model()[0])
    assert without_times(again) == without_times(undisturbed)
    assert again.summary()["accuracy"] == undisturbed.summary()["accuracy"]


def test_another_seed_gives_other_bits(undisturbed: RunFolder, tmp_path: Path) -> None:
    other = learned(small_config(seed=1), tmp_path / "other")
    assert not same_bits(other, undisturbed.load_model()[0])


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_changes_no_bit(
    undisturbed: RunFolder, tmp_path: Path, workers: int
) -> None:
    several = learn(small_config(workers=workers), tmp_path / "several")
    assert same_bits(several.load_model()[0], undisturbed.load_model()[0])
    assert without_times(several) == without_times(undisturbed)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, name: str) -> None:
    config = small_config(**SETTINGS[name])
    whole = learn(config, tmp_path / "whole")
    with pytest.raises(Crash):
        learn(config, tmp_path / "run", observer=StopAfter(len(whole.records()) - 1))
    folder = learn(None, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], whole.load_model()[0])
    assert without_times(folder) == without_times(whole)
    assert folder.summary()["accuracy"] == whole.summary()["accuracy"]
    for stage, cost in whole.summary()["costs"].items():
        assert folder.summary()["costs"][stage] | {"seconds": 0} == cost | {"seconds": 0}


def test_a_run_may_stop_after_every_round(undisturbed: RunFolder, tmp_path: Path) -> None:
    for stop in (1, 2, 3):
        with pytest.raises(Crash):
            learn(small_config(), tmp_path / "run", resume=stop > 1, observer=StopAfter(stop))
    folder = learn(None, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert without_times(folder) == without_times(undisturbed)


def test_a_run_stopped_before_its_first_round_begins_again(
    undisturbed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Observer):
        def on_client(self, task: str, client: str, done: int, total: int) -> None:
            raise Crash

    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=Stop())
    assert RunFolder.open(tmp_path / "run").records() == []
    folder = learn(None, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])


def test_a_line_written_before_its_checkpoint_is_not_there_twice(
    undisturbed: RunFolder, tmp_path: Path
) -> None:
    shutil.copytree(undisturbed.path, tmp_path / "run")
    for name in ("summary.json", "models/learned.safetensors"):
        (tmp_path / "run" / name).unlink()
    (tmp_path / "run/checkpoints/round-00003.safetensors").unlink()
    with (tmp_path / "run/rounds.jsonl").open("a") as file:
        file.write('{"round": 4, "los')
    folder = learn(None, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert without_times(folder) == without_times(undisturbed)


def test_a_finished_run_says_so_and_stays(undisturbed: RunFolder) -> None:
    said: list[str] = []

    class Listen(Observer):
        def on_message(self, text: str) -> None:
            said.append(text)

    before = {f: f.stat().st_mtime_ns for f in undisturbed.path.rglob("*")}
    learn(None, undisturbed.path, resume=True, observer=Listen())
    assert said == [f"{undisturbed.path} has learned already; nothing to do"]
    assert {f: f.stat().st_mtime_ns for f in undisturbed.path.rglob("*")} == before


def test_a_lost_model_is_made_again(undisturbed: RunFolder, tmp_path: Path) -> None:
    """The remedy for a truncated model: delete it and resume."""
    shutil.copytree(undisturbed.path, tmp_path / "run")
    model = tmp_path / "run" / "models" / "learned.safetensors"
    os.truncate(model, 1000)
    with pytest.raises(UserError, match=r"learned\.safetensors is damaged.*Delete it.*--resume"):
        RunFolder.open(tmp_path / "run").load_model()
    model.unlink()
    learn(None, tmp_path / "run", resume=True)
    assert same_bits(load_tensors(model)[0], undisturbed.load_model()[0])


def test_a_truncated_checkpoint_stops_resuming_until_it_is_deleted(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(2))
    newest = tmp_path / "run" / "checkpoints" / "round-00002.safetensors"
    os.truncate(newest, newest.stat().st_size // 2)
    with pytest.raises(UserError, match=r"round-00002\.safetensors is damaged.*Delete it"):
        learn(None, tmp_path / "run", resume=True)
    newest.unlink()
    folder = learn(None, tmp_path / "run", resume=True)
    assert [record["round"] for record in folder.records()] == [1, 2, 3]


def test_another_configuration_is_refused_by_its_keys(undisturbed: RunFolder) -> None:
    other = small_config(learning__rounds=4, learning__l2u__mid_rate=0.01, seed=2)
    with pytest.raises(
        UserError, match=r"\(seed, learning\.rounds, learning\.l2u\.mid_rate differ\)"
    ):
        learn(other, undisturbed.path, resume=True)


def test_what_changes_no_number_may_change(tmp_path: Path, undisturbed: RunFolder) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(1))
    free = small_config(workers=2, device="cpu", federation__keep_checkpoints=1)
    folder = learn(free, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert len(list(folder.checkpoints.iterdir())) == 1


def test_other_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(1))
    folder = RunFolder.open(tmp_path / "run")
    facts = folder.facts()
    facts["clients"][0]["samples"]["train"] += 1
    folder.write_facts(facts)
    with pytest.raises(UserError, match=r"data of .*run has changed.*\(clients differ\)"):
        learn(None, tmp_path / "run", resume=True)


def test_bad_data_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no domain 'nord'"):
        learn(small_config(data__domains=["nord"]), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_do_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No configuration given"):
        learn(None, tmp_path / "run")
    with pytest.raises(UserError, match="not a run folder"):
        learn(None, tmp_path / "run", resume=True)


def test_a_failing_client_is_named_and_left_out(tmp_path: Path, use_tasks: dict[str, Task]) -> None:
    use_tasks["learn"] = never_for("north-0", TASKS["learn"])
    folder = learn(small_config(), tmp_path / "run")
    for record in folder.records():
        assert record["failures"] == {"north-0": "OSError: the cable is out"}
        assert record["answered"] == 3
    assert "north-0" in folder.summary()["accuracy"]["test"]["clients"]


def test_a_client_with_nan_is_named_and_left_out(
    tmp_path: Path, use_tasks: dict[str, Task]
) -> None:
    def poison(context: TaskContext) -> tuple[Tensors, Numbers]:
        tensors, numbers = TASKS["learn"](context)
        if context.data.id == "east-1" and context.round == 2:
            tensors["head.weight"][0, 0] = float("nan")
        return tensors, numbers

    use_tasks["learn"] = poison
    folder = learn(small_config(), tmp_path / "run")
    failures = [record["failures"] for record in folder.records()]
    assert failures == [{}, {"east-1": "tensor 'head.weight' holds NaN or infinity"}, {}]
    assert all(t.isfinite().all() for t in folder.load_model()[0].values())


@pytest.mark.parametrize("every", [1, 5])
def test_below_the_quorum_a_run_stops_and_goes_on_later(
    tmp_path: Path, use_tasks: dict[str, Task], undisturbed: RunFolder, every: int
) -> None:
    def fails_in_round_two(context: TaskContext) -> tuple[Tensors, Numbers]:
        if context.round == 2 and context.data.id != "east-0":
            raise RuntimeError("no power")
        return TASKS["learn"](context)

    config = small_config(federation__checkpoint_every=every)
    use_tasks["learn"] = fails_in_round_two
    with pytest.raises(QuorumError, match=r"Round 2: 1 of 4 .* quorum is 2 .*east-1: .*no power"):
        learn(config, tmp_path / "run")
    folder = RunFolder.open(tmp_path / "run")
    saved = folder.last_checkpoint()
    assert saved is not None
    assert saved[1]["round"] == 1
    assert [record["round"] for record in folder.records()] == [1]
    use_tasks["learn"] = TASKS["learn"]
    learn(None, tmp_path / "run", resume=True)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert without_times(folder) == without_times(undisturbed)


def test_the_quorum_may_be_lowered_to_go_on(tmp_path: Path, use_tasks: dict[str, Task]) -> None:
    use_tasks["learn"] = never_for("north-0", TASKS["learn"])
    with pytest.raises(QuorumError, match=r"lower federation\.quorum, then continue"):
        learn(small_config(federation__quorum=1.0), tmp_path / "run")
    folder = learn(small_config(federation__quorum=0.5), tmp_path / "run", resume=True)
    assert len(folder.records()) == 3


class Recount:
    """Counts what crosses an engine, without the messages' own arithmetic."""

    def __init__(self) -> None:
        self.down: dict[str, int] = {}
        self.up: dict[str, int] = {}

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        perform = worker_module.Worker.perform

        def watched(worker: worker_module.Worker, request: Request) -> Reply:
            reply = perform(worker, request)
            self.down[request.task] = self.down.get(request.task, 0) + elements(request.tensors)
            self.up[request.task] = self.up.get(request.task, 0) + elements(reply.tensors)
            return reply

        monkeypatch.setattr(worker_module.Worker, "perform", watched)


def elements(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(t.numel() * torch.empty((), dtype=t.dtype).element_size() for t in tensors.values())


@pytest.mark.parametrize("objective", ["l2u", "supervised"])
def test_the_ledger_counts_what_crossed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    recount = Recount()
    recount.watch(monkeypatch)
    config = small_config(learning__objective=objective)
    folder = learn(config, tmp_path / "run")
    costs = folder.summary()["costs"]
    for stage, task in (("learning", "learn"), ("evaluation", "evaluate")):
        # What is more than the tensors is the settings and numbers as JSON.
        assert 0 < costs[stage]["bytes_down"] - recount.down[task] < 12 * 2500
        assert 0 < costs[stage]["bytes_up"] - recount.up[task] < 12 * 1000
    model = folder.load_model()[0]
    deployed = {name: t for name, t in model.items() if part_of(name) in DEPLOYED}
    assert recount.down["evaluate"] == 4 * elements(deployed)
    assert recount.up["evaluate"] == 0
    assert recount.down["learn"] == recount.up["learn"]
    travels = {"l2u": {*DEPLOYED, "D"}, "supervised": set(DEPLOYED)}[objective]
    sent = {name: t for name, t in model.items() if part_of(name) in travels}
    if objective == "l2u":
        assert recount.down["learn"] == 3 * 4 * elements(sent)
    else:
        assert recount.down["learn"] <= 3 * 4 * elements(sent)


def test_totals_are_the_sums_of_the_rounds(undisturbed: RunFolder) -> None:
    total = undisturbed.summary()["costs"]["learning"]
    records = undisturbed.records()
    for key in ("bytes_down", "bytes_up", "flops_client"):
        per_client = [cost[key] for r in records for cost in r["costs"].values()]
        assert total[key] == sum(per_client) > 0
    assert total["flops_server"] == sum(record["flops_server"] for record in records) > 0


def test_a_run_in_use_is_left_alone(tmp_path: Path) -> None:
    class Intrude(Observer):
        def on_round(self, record: dict[str, Any]) -> None:
            with pytest.raises(UserError, match="in use by another process"):
                learn(None, tmp_path / "run", resume=True)

    learn(small_config(learning__rounds=1), tmp_path / "run", observer=Intrude())


def test_processes_end_with_the_run_however_it_ends(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(workers=2), tmp_path / "run", observer=StopAfter(1))
    assert not multiprocessing.active_children()


def test_observers_hear_of_every_step(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []

    class Listen(Observer):
        def on_stage(self, stage: str, rounds: int, done: int) -> None:
            heard.append((stage, rounds, done))

        def on_client(self, task: str, client: str, done: int, total: int) -> None:
            heard.append((task, client, done, total))

        def on_round(self, record: dict[str, Any]) -> None:
            heard.append(("round", record["round"]))

    config: Config = small_config(learning__rounds=1)
    learn(config, tmp_path / "run", observer=Listen())
    names = ["east-0", "east-1", "north-0", "north-1"]
    tasks = {
        task: [(task, name, number, 4) for number, name in enumerate(names, start=1)]
        for task in ("learn", "evaluate")
    }
    assert heard == [("learning", 1, 0), *tasks["learn"], ("round", 1), *tasks["evaluate"]]


def test_the_last_updates_are_kept_when_asked_for(tmp_path: Path, undisturbed: RunFolder) -> None:
    """Data about clients: off unless asked for, and what is learned is the same."""
    assert not undisturbed.deltas.exists()
    run = learn(small_config(federation__keep_deltas=True), tmp_path / "run")
    assert same_bits(run.load_model()[0], undisturbed.load_model()[0])
    assert sorted(file.stem for file in run.deltas.iterdir()) == [
        *("east-0", "east-1", "north-0", "north-1"),
    ]
    # All clients have as many samples: their last updates' mean is the last step of the server.
    before, _ = load_tensors(run.checkpoints / "round-00002.safetensors")
    after = run.load_model()[0]
    kept = [run.load_delta(file.stem) or {} for file in run.deltas.iterdir()]
    names = {name for name in after if part_of(name) in ("V", "head")}
    assert all(delta.keys() == names for delta in kept)
    for name in names:
        if not after[name].is_floating_point():
            continue
        mean = torch.stack([delta[name].double() for delta in kept]).mean(0)
        step = after[name].double() - before[f"model.{name}"].double()
        torch.testing.assert_close(mean, step, rtol=0, atol=1e-6)
        assert bool(step.any()) or "logvar" in name


def test_resumed_the_last_updates_are_those_of_the_last_round(tmp_path: Path) -> None:
    config = small_config(federation__keep_deltas=True)
    whole = learn(config, tmp_path / "whole")
    with pytest.raises(Crash):
        learn(config, tmp_path / "broken", observer=StopAfter(2))
    broken = learn(None, tmp_path / "broken", resume=True)
    for file in whole.deltas.iterdir():
        one, other = whole.load_delta(file.stem), broken.load_delta(file.stem)
        assert one is not None
        assert other is not None
        assert same_bits(one, other)


def test_a_run_from_before_there_were_backdoors_goes_on(
    tmp_path: Path, undisturbed: RunFolder
) -> None:
    """A section that is missing in a run folder is at its defaults."""
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(1))
    file = tmp_path / "run" / "config.toml"
    older, _, _ = file.read_text().partition("[backdoor]")
    assert older != file.read_text()
    file.write_text(older)
    with pytest.raises(UserError, match=r"another configuration \(backdoor\.clients differ"):
        learn(small_config(backdoor__clients=["east"]), tmp_path / "run", resume=True)
    run = learn(small_config(), tmp_path / "run", resume=True)
    assert same_bits(run.load_model()[0], undisturbed.load_model()[0])
