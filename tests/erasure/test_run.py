import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from factories import same_bits
from small_runs import Crash, StopAfter

from foul import MachineError, Observer, RunFolder, UserError
from foul.erasure.fingerprint import fingerprint
from foul.erasure.receipts import check_receipt
from foul.erasure.requests import file_request, withdraw
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.runs.checkpoint import load_tensors
from foul.unlearning.stage import unlearn

from .conftest import LENIENT, SHORT, MakeStore

STRICT = LENIENT.replace("retain_loss = 1.0\n", "retain_loss = 0.0\n", 1)


def kinds(store: Store) -> list[str]:
    return [entry.kind for entry in store.entries()]


def receipts(store: Store) -> list[dict[str, Any]]:
    """What all receipts state, after they were checked."""
    assert check_receipt(store.receipts).ok
    files = sorted(store.receipts.glob("receipt-*.json"))
    return [check_receipt(file).statement for file in files]


def test_a_request_from_the_first_step_to_the_last(served: Store) -> None:
    assert kinds(served) == [
        *("adopted", "filed", "started", "unlearned", "judged", "promoted", "purged", "issued"),
        "finished",
    ]
    state = served.state()
    request, job = state.requests[1], state.jobs[1]
    assert [step[0] for step in request.history] == ["received", "running", "verifying", "done"]
    assert (job.phase, job.version, job.base) == ("done", 1, 0)
    assert state.current.hash == job.model == served.service_hash()
    assert state.versions[0].hash != state.current.hash
    assert state.current.traces["north-1"] == "unlearned"
    (told,) = receipts(served)
    assert (told["kind"], told["clients"]) == ("erasure", ["north-1"])
    assert told["models"]["before"] == state.versions[0].hash
    assert told["models"]["after"] == told["models"]["in_service"] == state.current.hash
    assert told["requests"][0]["reason"] == "contract ended"
    assert told["costs"]["rounds"] == 1
    assert told["purge_check"]["found"] == 0


def test_the_new_model_is_what_the_method_makes_and_everything_reads_it(
    served: Store, learned_run: Path, tmp_path: Path
) -> None:
    tensors, facts = served.folder.load_model()
    assert (facts["round"], facts["version"]) == (2, 1)
    accuracy = served.folder.summary()["accuracy"]["train"]["clients"]
    assert set(accuracy) == {"east-0", "east-1", "east-2", "north-0", "north-2"}
    other = RunFolder(tmp_path / "again")
    shutil.copytree(learned_run, other.path)
    unlearn(other.path, "client:north-1", "not", SHORT)
    assert same_bits(tensors, other.load_model("not-client-north-1")[0])


def test_a_second_request_starts_from_the_model_of_the_first(served: Store) -> None:
    first = served.state().current
    file_request(served, "client:east-0")
    (job,) = run(served, [2], "not", SHORT)
    assert job.base == first.number == 1
    assert served.state().current.number == 2
    traces = served.state().current.traces
    assert (traces["north-1"], traces["east-0"], traces["east-1"]) == (
        "unlearned",
        "unlearned",
        "trained",
    )
    told = receipts(served)
    assert told[1]["models"]["before"] == told[0]["models"]["after"] == first.hash


def test_retrain_leaves_out_who_was_erased_before(served: Store) -> None:
    file_request(served, "client:east-0")
    asked: list[str] = []

    class Listening(Observer):
        def on_round(self, record: dict[str, Any]) -> None:
            asked.extend(record["costs"])

    (job,) = run(served, [2], "retrain", SHORT, Listening())
    assert set(asked) == {"east-1", "east-2", "north-0", "north-2"}
    assert job.exact
    assert set(served.state().current.traces) == set(asked)


def test_requests_that_wait_are_served_together(store: Store) -> None:
    for forget in ("client:north-0", "client:east-1"):
        file_request(store, forget)
    (job,) = run(store, (), "not", SHORT)
    assert (job.requests, job.clients) == ((1, 2), ("east-1", "north-0"))
    assert [r.state for r in store.state().requests.values()] == ["done", "done"]
    one, two = receipts(store)
    assert (one["clients"], two["clients"]) == (["north-0"], ["east-1"])
    # Nobody reads of the other.
    assert "east-1" not in json.dumps(one)
    assert "1 other request" in one["outcome"]
    assert store.folder.erased() == {"north-0", "east-1"}


def test_a_smaller_request_is_served_by_a_larger_one(store: Store) -> None:
    file_request(store, "client:north-0")
    file_request(store, "domain:north")
    (job,) = run(store, [2], "not", SHORT)
    assert job.requests == (1, 2)
    assert [r.state for r in store.state().requests.values()] == ["done", "done"]


def test_of_an_overlapping_request_the_rest_is_served(served: Store) -> None:
    state = served.state()
    # As it would be if it had been filed before the first one was served.
    body = {
        "request": 2,
        "text": "client:north-1,east-0",
        "clients": ["east-0", "north-1"],
        "reason": "",
        "due": state.requests[1].due,
        "departed": False,
    }
    served.append("filed", body)
    (job,) = run(served, [2], "not", SHORT)
    assert job.clients == ("east-0",)
    told = receipts(served)[1]
    assert told["clients"] == ["east-0"]
    assert "north-1 had been erased before" in told["outcome"]


def test_nobody_would_be_left(store: Store) -> None:
    file_request(store, "domain:north")
    file_request(store, "domain:east")
    with pytest.raises(UserError, match="forgets all 6 clients"):
        run(store, [1, 2], "not", SHORT)
    jobs = run(store, [1], "not", SHORT)
    assert [job.phase for job in jobs] == ["done"]
    with pytest.raises(UserError, match="forgets all 3 clients"):
        run(store, [2], "not", SHORT)
    assert store.state().requests[2].state == "received"


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


def test_an_interrupted_job_can_be_given_up_for_another_method(store: Store) -> None:
    file_request(store, "client:north-1")
    with pytest.raises(Crash):
        run(store, [1], "retrain", ["rounds=2"], StopAfter(1))
    (job,) = run(store, [1], "not", SHORT)
    assert (job.number, job.method, job.phase) == (2, "not", "done")
    assert store.state().jobs[1].note == "given up for not"


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


@pytest.mark.parametrize(
    ("numbers", "method", "told"),
    [
        ([1], "none", "'none' forgets nothing"),
        ([1], "fool", "no method 'fool'"),
        ([1], "fedrecovery", None),
        ([2], "fedrecovery", "cannot serve this: no sum of contributions"),
        ([3], "not", "R-0003 is withdrawn and cannot be run"),
        ([9], "not", "no request R-0009"),
    ],
)
def test_what_cannot_be_run_changes_nothing(
    store: Store, numbers: list[int], method: str, told: str | None
) -> None:
    file_request(store, "client:north-1")
    file_request(store, "domain:east")
    file_request(store, "client:north-0")
    withdraw(store, 3)
    if told is None:
        assert run(store, numbers, method)[0].phase == "done"
        return
    before = store.service_hash()
    with pytest.raises(UserError, match=told):
        run(store, numbers, method)
    assert store.service_hash() == before
    assert not store.state().jobs


def test_a_wrong_key_is_told_before_anything_is_done(served: Store) -> None:
    file_request(served, "client:east-0")
    (served.path / "keys" / "current.pem").unlink()
    before = (served.service_hash(), kinds(served))
    with pytest.raises(UserError, match="key"):
        run(served, [2], "not", SHORT)
    assert (served.service_hash(), kinds(served)) == before


def test_a_changed_candidate_is_not_put_into_service(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_request(store, "client:north-1")
    before = store.service_hash()
    with monkeypatch.context() as patch:
        patch.setattr("foul.erasure.run.purge.prepare", crash)
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


def test_given_up_without_a_number_its_requests_are_served_by_the_other_method(
    store: Store,
) -> None:
    file_request(store, "client:north-1")
    with pytest.raises(Crash):
        run(store, [1], "retrain", ["rounds=2"], StopAfter(1))
    with pytest.raises(UserError, match="no method 'fool'"):
        run(store, (), "fool")
    assert store.state().requests[1].state == "running"
    (job,) = run(store, (), "not", SHORT)
    assert (job.requests, job.method, job.phase) == ((1,), "not", "done")


def test_a_job_is_not_given_up_for_a_method_that_another_request_asks_for(store: Store) -> None:
    file_request(store, "client:north-1")
    with pytest.raises(Crash):
        run(store, [1], "retrain", ["rounds=2"], StopAfter(1))
    file_request(store, "client:east-0")
    jobs = run(store, [2], "not", SHORT)
    assert [(job.requests, job.method, job.phase) for job in jobs] == [
        ((1,), "retrain", "done"),
        ((2,), "not", "done"),
    ]


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


def test_a_request_with_nobody_left_is_not_served_with_another(served: Store) -> None:
    body = served.entries()[1].body
    # As it would be if it had been filed while the first one was served.
    served.append("filed", {**body, "request": 2})
    file_request(served, "client:east-0")
    (job,) = run(served, [3], "not", SHORT)
    assert (job.requests, job.phase) == ((3,), "done")


def test_a_model_that_the_ledger_does_not_know_is_not_built_on(served: Store) -> None:
    file_request(served, "client:east-0")
    tensors, facts = served.folder.load_model()
    served.folder.save_model("learned", {n: t + 1 for n, t in tensors.items()}, facts)
    with pytest.raises(UserError, match=r"is not version 1 .*foul erase relearn"):
        run(served, [2], "not", SHORT)
    assert len(served.state().jobs) == 1


def test_known_better_than_new_data_it_is_not_forgotten(make_store: MakeStore) -> None:
    store = make_store(LENIENT.replace("forget_gap = 1.0", "forget_gap = 0.0"))
    file_request(store, "client:north-1")
    (job,) = run(store, [1], "not", SHORT)
    told = job.evidence["1"]
    gap = told["after"]["fa"] - told["after"]["forget_test"]
    (check,) = [check for check in told["checks"] if check["key"] == "fa"]
    assert check["value"] == pytest.approx(gap)
    assert told["passed"] == check["passed"] == (gap <= 0)
