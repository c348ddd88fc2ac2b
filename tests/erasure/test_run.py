import shutil
from pathlib import Path
from typing import Any

import pytest
from factories import same_bits
from small_runs import Crash, StopAfter

from foul import Observer, RunFolder, UserError
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.unlearning.stage import unlearn

from .conftest import LENIENT, SHORT, MakeStore, kinds, receipts


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


def test_an_interrupted_job_can_be_given_up_for_another_method(store: Store) -> None:
    file_request(store, "client:north-1")
    with pytest.raises(Crash):
        run(store, [1], "retrain", ["rounds=2"], StopAfter(1))
    (job,) = run(store, [1], "not", SHORT)
    assert (job.number, job.method, job.phase) == (2, "not", "done")
    assert store.state().jobs[1].note == "given up for not"


def test_a_wrong_key_is_told_before_anything_is_done(served: Store) -> None:
    file_request(served, "client:east-0")
    (served.path / "keys" / "current.pem").unlink()
    before = (served.service_hash(), kinds(served))
    with pytest.raises(UserError, match="key"):
        run(served, [2], "not", SHORT)
    assert (served.service_hash(), kinds(served)) == before


def test_what_went_on_and_failed_is_not_tried_again_by_the_same_call(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(LENIENT.replace("mia_auc_high = 1.0", "mia_auc_high = 0.5"))
    file_request(store, "client:north-1")

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("foul.erasure.service.measure", crash)
        with pytest.raises(Crash):
            run(store, [1], "not", SHORT)
    assert [job.phase for job in run(store, [1], "not", SHORT)] == ["failed"]
    assert len(store.state().jobs) == 1
    # Asked for once more, it is.
    assert [job.number for job in run(store, [1, 1], "not", SHORT)] == [2]


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


def test_a_model_that_the_ledger_does_not_know_is_not_built_on(served: Store) -> None:
    file_request(served, "client:east-0")
    tensors, facts = served.folder.load_model()
    served.folder.save_model("learned", {n: t + 1 for n, t in tensors.items()}, facts)
    with pytest.raises(UserError, match=r"is not version 1 .*foul erase relearn"):
        run(served, [2], "not", SHORT)
    assert len(served.state().jobs) == 1
