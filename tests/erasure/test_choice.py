import json

import pytest

from foul import UserError
from foul.erasure.requests import file_request, withdraw
from foul.erasure.run import run
from foul.erasure.store import Store

from .conftest import SHORT, receipts


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


@pytest.mark.parametrize(
    ("numbers", "method", "told"),
    [
        ([1], "none", "'none' is a control"),
        ([1], "continue", "'continue' is a control"),
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


def test_a_request_with_nobody_left_is_not_served_with_another(served: Store) -> None:
    body = served.entries()[1].body
    # As it would be if it had been filed while the first one was served.
    served.append("filed", {**body, "request": 2})
    file_request(served, "client:east-0")
    (job,) = run(served, [3], "not", SHORT)
    assert (job.requests, job.phase) == ((3,), "done")
