import errno
from pathlib import Path
from typing import Any

import pytest
from small_runs import Crash, StopAfter

from foul import MachineError, Observer, RunFolder, UserError
from foul.erasure.fingerprint import fingerprint
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.runs.checkpoint import load_tensors

from .conftest import LENIENT, SHORT, MakeStore, receipts

STRICT = LENIENT.replace("retain_loss = 1.0\n", "retain_loss = 0.0\n", 1)


def test_a_policy_that_is_missed_leaves_the_old_model_in_service(make_store: MakeStore) -> None:
    store = make_store(STRICT.replace("mia_auc_high = 1.0", "mia_auc_high = 0.5"))
    before = (store.folder.models / "learned.safetensors").read_bytes()
    file_request(store, "client:north-1")
    (job,) = run(store, [1], "not", SHORT)
    assert job.phase == "failed"
    assert "upper end of the attack's AUC" in job.note
    assert (store.folder.models / "learned.safetensors").read_bytes() == before
    assert [file.name for file in store.folder.models.iterdir()] == ["learned.safetensors"]
    assert store.folder.erased() == frozenset()
    state = store.state()
    assert (state.requests[1].state, state.current.number) == ("failed", 0)
    (told,) = receipts(store)
    assert told["kind"] == "failure"
    assert told["models"]["in_service"] == told["models"]["before"]
    # Nothing waits, but the request can be tried again.
    assert run(store, (), "not", SHORT) == []
    (store.path / "policy.toml").write_text(LENIENT)
    assert run(store, [1], "retrain", SHORT)[0].phase == "done"
    assert [told["kind"] for told in receipts(store)] == ["failure", "erasure"]


def test_interrupted_while_unlearning_it_goes_on_with_the_same_bits(
    store: Store, make_store: MakeStore
) -> None:
    other = make_store(name="undisturbed")
    for which in (store, other):
        file_request(which, "client:north-1")
    run(other, [1], "retrain", ["rounds=2"])
    with pytest.raises(Crash):
        run(store, [1], "retrain", ["rounds=2"], StopAfter(1))
    assert store.state().requests[1].state == "running"
    rounds: list[int] = []

    class Listening(Observer):
        def on_round(self, record: dict[str, Any]) -> None:
            rounds.append(record["round"])

    (job,) = run(store, observer=Listening())
    assert (job.number, job.phase, rounds) == (1, "done", [2])
    assert store.state().current.hash == other.state().current.hash


def test_a_client_out_of_reach_is_asked_nothing(make_store: MakeStore) -> None:
    store = make_store()
    file_request(store, "client:north-1", departed=True)
    asked: set[str] = set()

    class Listening(Observer):
        def on_client(self, task: str, client: str, done: int, total: int) -> None:
            asked.add(f"{task} {client}")

    (job,) = run(store, [1], "not", SHORT, Listening())
    assert "learn north-0" in asked
    assert not [told for told in asked if told.endswith("north-1")]
    assert (job.phase, job.note.count("not measured")) == ("failed", 3)
    (job,) = run(store, [1], "retrain", SHORT)
    assert job.phase == "done"
    assert job.evidence["1"]["after"]["fa"] is None


def test_a_changed_candidate_is_not_put_into_service(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_request(store, "client:north-1")
    before = store.service_hash()
    with monkeypatch.context() as patch:
        patch.setattr("foul.erasure.service.purge.prepare", crash)
        with pytest.raises(Crash):
            run(store, [1], "not", SHORT)
    assert store.folder.erased() == {"north-1"}
    candidate = store.folder.path / store.state().jobs[1].file
    candidate.write_bytes(candidate.read_bytes()[:-4] + b"\1\2\3\4")
    with pytest.raises(UserError, match=r"was lost or changed.*run the request again"):
        run(store)
    assert store.service_hash() == before
    assert store.folder.erased() == frozenset()
    assert store.state().requests[1].state == "failed"
    assert run(store, [1], "not", SHORT)[0].phase == "done"


def crash(*_: object) -> None:
    raise Crash


def test_the_old_model_is_kept_if_the_policy_says_so(make_store: MakeStore) -> None:
    store = make_store(LENIENT + "[purge]\nold_model = 'keep'\ncheckpoints = 'keep'\n")
    before = store.service_hash()
    file_request(store, "client:north-1")
    run(store, [1], "not", SHORT)
    assert fingerprint(load_tensors(store.kept / "version-0.safetensors")[0]) == before
    assert list(store.folder.checkpoints.iterdir())
    (told,) = receipts(store)
    assert any("the policy keeps" in text for text in told["kept"])


def test_a_full_disk_leaves_the_old_model_in_service(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_request(store, "client:north-1")
    before, write = store.service_hash(), Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name.startswith(".learned"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(MachineError, match="The disk is full"):
            run(store, [1], "not", SHORT)
    assert store.service_hash() == before
    assert store.state().requests[1].state == "verifying"
    (job,) = run(store, [1])
    assert (job.number, job.phase) == (1, "done")
    assert store.service_hash() == job.model != before


def test_limits_that_the_old_model_meets_show_nothing_and_the_receipt_says_so(
    served: Store,
) -> None:
    assert served.state().jobs[1].evidence["1"]["before_passed"]
    assert "The model before met the policy's limits, too" in receipts(served)[0]["outcome"]
    file_request(served, "client:east-0")
    run(served, [2], "retrain", SHORT)
    assert "too" not in receipts(served)[1]["outcome"]


def test_a_lost_candidate_is_told_and_leaves_no_samples_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_request(store, "client:north-1")
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_model", fails_for_the_model_in_service)
        with pytest.raises(Crash):
            run(store, [1], "not", SHORT)
    assert list(store.path.glob("purge-*"))
    (store.folder.path / store.state().jobs[1].file).unlink()
    with pytest.raises(UserError, match="was lost or changed"):
        run(store)
    assert not list(store.path.glob("purge-*"))
    assert store.state().requests[1].state == "failed"


_save_model = RunFolder.save_model


def fails_for_the_model_in_service(folder: RunFolder, name: str, *values: Any) -> Path:
    if name == "learned":
        raise Crash
    return _save_model(folder, name, *values)


def test_known_better_than_new_data_it_is_not_forgotten(make_store: MakeStore) -> None:
    store = make_store(LENIENT.replace("forget_gap = 1.0", "forget_gap = 0.0"))
    file_request(store, "client:north-1")
    (job,) = run(store, [1], "not", SHORT)
    told = job.evidence["1"]
    gap = told["after"]["fa"] - told["after"]["forget_test"]
    (check,) = [check for check in told["checks"] if check["key"] == "fa"]
    assert check["value"] == pytest.approx(gap)
    assert told["passed"] == check["passed"] == (gap <= 0)
