import pytest
from small_runs import Crash, StopAfter

from foul import UserError
from foul.erasure.audit import audit
from foul.erasure.readmission import readmit
from foul.erasure.receipts import check_receipt
from foul.erasure.relearning import relearn
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.unlearning.stage import unlearn

from .conftest import SHORT


def test_an_erased_client_takes_part_in_nothing_until_it_is_readmitted(served: Store) -> None:
    with pytest.raises(UserError, match="'north-1' was erased"):
        unlearn(served.folder.path, "client:north-1", "not", SHORT)
    version = relearn(served, 1)
    assert version.traces["north-1"] == "unlearned"
    back = readmit(served, "North-1", "new contract")
    assert (back.id, back.status) == ("north-1", "readmitted")
    assert served.folder.erased() == frozenset()
    assert len(served.folder.facts()["clients"]) == 6
    assert relearn(served, 1).traces["north-1"] == "trained"
    told = check_receipt(served.receipts / "receipt-000002.json").statement
    assert (told["kind"], told["clients"]) == ("readmission", ["north-1"])
    assert "new contract" in told["outcome"]
    assert all(finding.ok for finding in audit(served))


def test_a_readmitted_client_can_be_erased_again(served: Store) -> None:
    readmit(served, "north-1", "new contract")
    relearn(served, 1)
    assert file_request(served, "client:north-1").number == 2
    assert run(served, [2], "not", SHORT)[0].phase == "done"
    assert served.folder.erased() == {"north-1"}
    readmit(served, "north-1", "and again")
    assert [body["reason"] for body in served.state().readmitted] == ["new contract", "and again"]
    assert len(list(served.receipts.glob("receipt-*.json"))) == 4


@pytest.mark.parametrize(
    ("client", "reason", "told"),
    [
        ("north-1", " ", "needs a reason"),
        ("north-0", "why not", r"'north-0' is not erased \(erased: north-1\)"),
        ("nort-1", "why not", "Did you mean 'north-1'"),
    ],
)
def test_who_cannot_be_readmitted(served: Store, client: str, reason: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        readmit(served, client, reason)
    assert served.folder.erased() == {"north-1"}


def test_an_interrupted_erasure_comes_first(served: Store) -> None:
    file_request(served, "client:east-0")
    with pytest.raises(Crash):
        run(served, [2], "retrain", ["rounds=2"], StopAfter(1))
    with pytest.raises(UserError, match=r"Job 2 was interrupted.*foul erase run"):
        readmit(served, "north-1", "new contract")
    with pytest.raises(UserError, match=r"Job 2 was interrupted.*foul erase run"):
        relearn(served, 1)
