import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foul.config import Config
from foul.errors import FoulError, MachineError, UserError
from foul.runs.folder import FORMAT, RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", Config(seed=5), {"classes": ["a", "b"]})


def tree(path: Path) -> dict[str, bytes]:
    """Content of every file."""
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def checkpoint(folder: RunFolder, round: int, keep: int = 9) -> None:
    folder.save_checkpoint(round, {"t": torch.full((2,), float(round))}, {"round": round}, keep)


def test_a_new_folder_explains_itself(folder: RunFolder) -> None:
    assert folder.config() == Config(seed=5)
    facts = RunFolder.open(folder.path).facts()
    assert facts["classes"] == ["a", "b"]
    assert facts["format"] == FORMAT
    assert set(os.listdir(folder.path)) == {"checkpoints", "config.toml", "models", "run.json"}


def test_an_existing_folder_is_left_alone(folder: RunFolder) -> None:
    before = tree(folder.path)
    with pytest.raises(UserError, match=r"run exists already.*--resume.*another --out"):
        RunFolder.create(folder.path, Config(), {})
    assert tree(folder.path) == before


@pytest.mark.parametrize("made", ["folder", "file"])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, made: str) -> None:
    path = tmp_path / "thing"
    if made == "folder":
        path.mkdir()
    (path / "notes.txt" if made == "folder" else path).write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        RunFolder.create(path, Config(), {})
    assert list(tree(tmp_path).values()) == [b"mine"]


def test_an_empty_folder_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RunFolder.create(tmp_path / "run", Config(), {})
    RunFolder.open(tmp_path / "run")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/run cannot be created.*another --out"):
        RunFolder.create(tmp_path / "file" / "run", Config(), {})


def test_a_full_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match="disk is full"):
        RunFolder.create(tmp_path / "run", Config(), {})
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_during_creation_leaves_is_no_obstacle(folder: RunFolder) -> None:
    (folder.path / "run.json").rename(folder.path / ".run.json.7.tmp")
    with pytest.raises(UserError, match="not a run folder"):
        RunFolder.open(folder.path)
    RunFolder.create(folder.path, Config(seed=6), {})
    assert RunFolder.open(folder.path).config().seed == 6


def test_what_is_no_run_folder_is_said_to_be_none(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=rf"{path} is not a run folder"):
            RunFolder.open(path)


def test_another_format_names_the_version_that_wrote_it(folder: RunFolder) -> None:
    folder.write_facts({"format": FORMAT + 1, "version": "9.9"})
    with pytest.raises(UserError, match=rf"run format {FORMAT + 1}, .* reads {FORMAT}.*\(9\.9\)"):
        RunFolder.open(folder.path)


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "\x00"])
def test_damaged_facts_are_named(folder: RunFolder, content: str) -> None:
    (folder.path / "run.json").write_text(content)
    with pytest.raises(UserError, match=r"run\.json"):
        RunFolder.open(folder.path)


HOLD = """
import fcntl, sys
with open(sys.argv[1] + "/.lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""
"""Another process that holds a folder, without the time it takes to import foul."""


def test_a_folder_belongs_to_one_process(folder: RunFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match="in use by another process"), folder.lock():
            pass
        other.kill()
        other.wait()
        with folder.lock():
            pass


def test_holding_a_folder_sweeps_what_a_kill_left(folder: RunFolder) -> None:
    checkpoint(folder, 1)
    for path in (folder.path, folder.checkpoints, folder.models):
        (path / ".half.safetensors.99.tmp").write_bytes(b"half")
    with folder.lock():
        assert not [name for name in tree(folder.path) if name.endswith(".tmp")]
    assert folder.last_checkpoint() is not None


def test_the_newest_checkpoint_counts_and_old_ones_go(folder: RunFolder) -> None:
    assert folder.last_checkpoint() is None
    for round in (1, 2, 9, 10, 11):
        checkpoint(folder, round, keep=2)
    saved = folder.last_checkpoint()
    assert saved is not None
    assert saved[1] == {"round": 11}
    assert saved[0]["t"].tolist() == [11.0, 11.0]
    names = sorted(file.name for file in folder.checkpoints.iterdir())
    assert names == ["round-00010.safetensors", "round-00011.safetensors"]


def test_old_checkpoints_go_only_when_the_new_one_is_safe(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoint(folder, 1, keep=1)
    before = tree(folder.path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(MachineError, match="disk is full"):
            checkpoint(folder, 2, keep=1)
    assert tree(folder.path) == before


def test_a_truncated_checkpoint_can_be_deleted(folder: RunFolder) -> None:
    checkpoint(folder, 1)
    checkpoint(folder, 2)
    newest = folder.checkpoints / "round-00002.safetensors"
    os.truncate(newest, 100)
    with pytest.raises(UserError, match=r"round-00002\.safetensors.*Delete it"):
        folder.last_checkpoint()
    newest.unlink()
    saved = folder.last_checkpoint()
    assert saved is not None
    assert saved[1] == {"round": 1}


def test_rewinding_forgets_later_rounds(folder: RunFolder) -> None:
    records = [{"round": round, "loss": 0.1 * round} for round in range(1, 6)]
    for record in records:
        folder.append(record)
    assert folder.records() == records
    folder.rewind(3)
    assert folder.records() == records[:3]
    folder.append(records[3])
    folder.rewind(9)
    assert folder.records() == records[:4]
    folder.rewind(0)
    assert folder.records() == []


@settings(deadline=None, max_examples=25)
@given(cut=st.integers(1, 60))
def test_a_half_written_line_is_no_record(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = RunFolder(tmp_path_factory.getbasetemp())
    folder.rewind(0)
    records = [{"round": round, "name": "ä\n", "x": [1, {}]} for round in (1, 2)]
    for record in records:
        folder.append(record)
    file = folder.path / "rounds.jsonl"
    last = len(json.dumps(records[1])) + 1
    os.truncate(file, file.stat().st_size - min(cut, last))
    # A line that lacks no more than its end of line says all.
    kept = records if cut == 1 else records[:1]
    assert folder.records() == kept
    folder.rewind(2)
    folder.append({"round": 3})
    assert folder.records() == [*kept, {"round": 3}]


def test_a_full_disk_while_recording_is_the_machines_failure(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder.append({"round": 1})
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=r"disk is full: .*rounds\.jsonl.*--resume"):
        folder.append({"round": 2})


def test_models_are_kept_by_name(folder: RunFolder) -> None:
    with pytest.raises(UserError, match=r"no model 'learned' \(it has: none\).*--resume"):
        folder.load_model()
    folder.save_model("other", {"t": torch.ones(1)}, {"round": 4})
    assert folder.load_model("other")[1] == {"round": 4}
    with pytest.raises(FoulError, match=r"no model 'learned' \(it has: other\)"):
        folder.load_model()


def test_a_damaged_summary_is_named(folder: RunFolder) -> None:
    (folder.path / "summary.json").write_text('{"stage": ')
    with pytest.raises(FoulError, match=r"summary\.json is not valid JSON"):
        folder.summary()


def test_a_run_has_learned_when_summary_and_model_are_there(folder: RunFolder) -> None:
    assert folder.summary() == {}
    assert not folder.learned()
    folder.write_summary({"stage": "learned"})
    assert not folder.learned()
    folder.save_model("learned", {"t": torch.ones(1)}, {})
    assert folder.learned()


def test_disk_bytes_counts_every_file(folder: RunFolder) -> None:
    checkpoint(folder, 1)
    assert folder.disk_bytes() == sum(len(content) for content in tree(folder.path).values())


def test_of_a_clients_update_only_what_unlearning_can_change_is_kept(folder: RunFolder) -> None:
    assert folder.load_delta("ink-0") is None
    parts = ("E.w", "K.w", "V.w", "V.bn.running_mean", "head.bias", "xi.bias", "psi.w")
    for value in (1.0, 2.0):
        folder.save_delta("ink-0", {name: torch.full((2,), value) for name in parts})
    kept = RunFolder.open(folder.path).load_delta("ink-0")
    assert kept is not None
    # The last one, of V and of the joint head.
    assert {name: t.tolist() for name, t in kept.items()} == {
        "V.w": [2.0, 2.0],
        "V.bn.running_mean": [2.0, 2.0],
        "head.bias": [2.0, 2.0],
    }
    assert [file.name for file in folder.deltas.iterdir()] == ["ink-0.safetensors"]
    assert folder.load_delta("ink-1") is None


# What was measured of a model


def test_measurements_of_one_model_add_up(folder: RunFolder) -> None:
    assert folder.load_evaluation("foul-domain-east") == {}
    folder.save_evaluation("foul-domain-east", {"identity": "a", "attacks": {"loss": 1}})
    folder.save_evaluation("foul-domain-east", {"identity": "a", "kl": None})
    folder.save_evaluation("none-domain-east", {"identity": "a", "kl": 3})
    assert folder.load_evaluation("foul-domain-east") == {
        "identity": "a",
        "attacks": {"loss": 1},
        "kl": None,
    }
    folder.save_evaluation("foul-domain-east", {"identity": "a", "attacks": {"svm": 2}})
    # What is measured again takes the place of what was there.
    assert folder.load_evaluation("foul-domain-east")["attacks"] == {"svm": 2}
    assert sorted(file.name for file in folder.evaluation.iterdir()) == [
        *("foul-domain-east.json", "none-domain-east.json")
    ]


def test_measurements_of_another_model_are_forgotten(folder: RunFolder) -> None:
    folder.save_evaluation("foul-domain-east", {"identity": "a", "attacks": {"loss": 1}})
    folder.save_evaluation("foul-domain-east", {"identity": "b", "kl": 3})
    assert folder.load_evaluation("foul-domain-east") == {"identity": "b", "kl": 3}


def test_damaged_measurements_are_named(folder: RunFolder) -> None:
    folder.save_evaluation("foul", {"identity": "a"})
    file = folder.evaluation / "foul.json"
    file.write_text('{"identity": ')
    with pytest.raises(UserError, match=r"foul\.json is not valid JSON.*Delete it"):
        folder.load_evaluation("foul")
    file.write_text("[1, 2]")
    assert folder.load_evaluation("foul") == {}


def test_half_written_measurements_are_removed(folder: RunFolder) -> None:
    folder.save_evaluation("foul", {"identity": "a"})
    (folder.evaluation / ".foul.json.123.tmp").write_text("half")
    with folder.lock():
        pass
    assert [file.name for file in folder.evaluation.iterdir()] == ["foul.json"]


def test_who_was_erased_is_noted_and_no_longer_part_of_the_data(folder: RunFolder) -> None:
    assert folder.erased() == frozenset()
    clients = [{"id": "a-0", "domain": "a"}, {"id": "b-0", "domain": "b"}]
    folder.write_facts({**folder.facts(), "clients": clients})
    folder.write_erased(["b-0"])
    assert RunFolder.open(folder.path).erased() == {"b-0"}
    folder.require_same_data({"clients": clients})
    folder.require_same_data({"clients": clients[:1]})
    with pytest.raises(UserError, match="clients differ"):
        folder.require_same_data({"clients": clients[1:]})


def test_a_damaged_list_of_the_erased_is_told(folder: RunFolder) -> None:
    folder.erased_file.write_text("{}")
    with pytest.raises(UserError, match=r"erased\.json does not hold a list of clients"):
        folder.erased()
