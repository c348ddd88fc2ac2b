import errno
import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest
from factories import same_bits
from small_runs import Crash, StopAfter, small_config

import foul.client.worker as worker_module
from foul import RunFolder, learn
from foul.client.context import TaskContext
from foul.client.worker import TASKS
from foul.federation.messages import Numbers, Tensors

from .conftest import Foul


def content(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A run that stopped after its first round."""
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "stopped", observer=StopAfter(1))
    return tmp_path / "stopped"


def test_it_does_what_the_python_twin_does(
    foul: Foul, small: Path, tmp_path: Path, finished: RunFolder
) -> None:
    outcome = foul("learn", small, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome.err
    folder = RunFolder.open(tmp_path / "run")
    assert same_bits(folder.load_model()[0], finished.load_model()[0])
    assert folder.facts()["command"].startswith(f"foul learn {small}")
    for word in ("north", "east", "z_K only", "learning", "evaluation"):
        assert word in outcome.out
    assert outcome.err.count("\n") == 3
    assert "learning 3/3  validation" in outcome.err


def test_figures_as_json(foul: Foul, small: Path, tmp_path: Path) -> None:
    outcome = foul("learn", small, "--out", tmp_path / "run", "--json", "--quiet")
    summary = outcome.json
    assert outcome.err == ""
    assert summary.keys() == {
        "stage",
        "rounds",
        "best_round",
        "not_evaluated",
        "accuracy",
        "costs",
        "wall_seconds",
        "disk_bytes",
    }
    assert summary == RunFolder.open(tmp_path / "run").summary()


def test_the_default_place_is_named_after_the_configuration(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small.rename(tmp_path / "mine.toml")
    assert foul("learn", "mine.toml", "seed=3", "learning.rounds=1").code == 0
    assert tomllib.loads((tmp_path / "runs/mine/config.toml").read_text())["seed"] == 3


def test_an_existing_folder_is_refused_and_unchanged(
    foul: Foul, small: Path, finished: RunFolder
) -> None:
    before = content(finished.path)
    line = foul("learn", small, "--out", finished.path).error()
    assert f"{finished.path} exists already. Continue it with --resume" in line
    assert content(finished.path) == before


def test_resuming_ends_with_the_same_bits(foul: Foul, stopped: Path, finished: RunFolder) -> None:
    assert foul("learn", "--resume", "--out", stopped, "-q").code == 0
    assert same_bits(RunFolder.open(stopped).load_model()[0], finished.load_model()[0])


def test_overrides_alone_change_the_runs_own_configuration(foul: Foul, stopped: Path) -> None:
    line = foul("learn", "learning.rounds=9", "seed=1", "--resume", "--out", stopped).error()
    assert "another configuration (seed, learning.rounds differ)" in line
    assert "Resume without a configuration" in line
    assert foul("learn", "federation.quorum=0.2", "--resume", "--out", stopped).code == 0


def test_resuming_with_another_configuration_is_refused(
    foul: Foul, small: Path, stopped: Path
) -> None:
    before = content(stopped)
    line = foul("learn", small, "model.width=0.5", "--resume", "--out", stopped).error()
    assert "(model.width differ)" in line
    assert content(stopped) == before


def test_a_finished_run_says_so(foul: Foul, finished: RunFolder) -> None:
    outcome = foul("learn", "--resume", "--out", finished.path)
    assert outcome.code == 0
    assert outcome.err == f"{finished.path} has learned already; nothing to do\n"
    assert "accuracy" in outcome.out


def test_resuming_needs_a_run(foul: Foul, small: Path, tmp_path: Path) -> None:
    assert "--resume needs the run folder. Add --out" in foul("learn", "--resume").error()
    line = foul("learn", "--resume", "--out", tmp_path / "none").error()
    assert "none is not a run folder" in line


def test_tensorboard_is_kept_when_a_run_is_resumed(foul: Foul, stopped: Path) -> None:
    pytest.importorskip("tensorboard")
    file = stopped / "config.toml"
    file.write_text(file.read_text().replace("tensorboard = false", "tensorboard = true"))
    assert foul("learn", "--resume", "--out", stopped, "-q").code == 0
    assert list((stopped / "tensorboard").glob("events.*"))


def test_a_client_left_out_is_told(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(context: TaskContext) -> tuple[Tensors, Numbers]:
        if context.data.id == "north-0":
            raise ValueError("no luck")
        return TASKS["learn"](context)

    tasks = {**TASKS, "learn": broken}
    monkeypatch.setattr(worker_module.Worker.__init__, "__defaults__", (None, tasks, None))
    run = tmp_path / "run"
    outcome = foul("learn", small, "--out", run)
    assert outcome.code == 0
    assert "round 1: left out north-0: ValueError: no luck\n" in outcome.err
    assert json.loads((run / "rounds.jsonl").read_text().splitlines()[0])["failures"] == {
        "north-0": "ValueError: no luck"
    }
    stop = foul("learn", small, "federation.quorum=1", "--out", tmp_path / "stop")
    line = stop.error(code=1)
    assert "Round 1: 3 of 4 clients answered, the quorum is 4 (north-0: ValueError" in line
    monkeypatch.undo()


def test_a_full_disk_stops_with_the_state_saved(
    foul: Foul, small: Path, tmp_path: Path, finished: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, run = os.fsync, tmp_path / "run"

    def full(handle: int) -> None:
        if (run / "checkpoints" / "round-00002.safetensors").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        line = foul("learn", small, "--out", run).error(code=1)
    assert "The disk is full" in line
    assert "--resume" in line
    assert not list(run.rglob("*.tmp"))
    assert foul("learn", "--resume", "--out", run).code == 0
    assert same_bits(RunFolder.open(run).load_model()[0], finished.load_model()[0])


def test_a_truncated_checkpoint_is_named(foul: Foul, stopped: Path) -> None:
    os.truncate(stopped / "checkpoints" / "round-00001.safetensors", 500)
    line = foul("learn", "--resume", "--out", stopped).error()
    assert "round-00001.safetensors is damaged" in line
    assert "Delete it" in line


def test_a_folder_of_another_version_is_named(foul: Foul, stopped: Path) -> None:
    facts = json.loads((stopped / "run.json").read_text())
    (stopped / "run.json").write_text(json.dumps({**facts, "format": 99, "version": "9.0"}))
    line = foul("learn", "--resume", "--out", stopped).error()
    assert "run format 99" in line
    assert "(9.0)" in line


def test_ones_own_images_learn_from_the_command_line(
    foul: Foul, own_images: Path, tmp_path: Path
) -> None:
    """As the README tells it, but for less than the default number of rounds."""
    assert foul("data", "check", own_images).code == 0
    run = tmp_path / "run"
    outcome = foul(
        *("learn", "folder", f"data.path={own_images}", "data.image_size=16", "workers=1"),
        "threads=1",
        *("clients.per_domain=2", "learning.rounds=4", "learning.batch_size=4"),
        *("learning.objective=supervised", "--out", run, "--json"),
    )
    accuracy = outcome.json["accuracy"]["test"]
    assert accuracy["domains"].keys() == {"ink", "oil"}
    assert accuracy["all"]["samples"] == 10
    images = [own_images / "ink" / "day" / "0.png", own_images / "oil" / "night" / "1.png"]
    labels = [p["label"] for p in foul("predict", run, *images, "--json").json]
    assert set(labels) <= {"day", "night"}
    # What is decoded is in the cache: the images themselves are needed no more to look.
    shutil.rmtree(own_images)
    assert foul("info", run).code == 0
