import pytest
from small_runs import Crash, StopAfter

from foul import UserError
from foul.erasure.audit import audit
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store

from .conftest import LENIENT, SHORT, MakeStore


def wrong(store: Store) -> list[str]:
    return [finding.what for finding in audit(store) if not finding.ok]


def test_after_an_erasure_everything_is_in_order(served: Store, store: Store) -> None:
    assert wrong(served) == []
    assert [finding.what for finding in audit(served)] == [
        *("ledger", "model in service", "tombstones", "receipts", "leftovers")
    ]
    assert wrong(store) == []


def test_each_kind_of_trouble_is_named(served: Store) -> None:
    file_request(served, "client:east-0")
    with pytest.raises(Crash):
        run(served, [2], "retrain", ["rounds=2"], StopAfter(1))
    assert wrong(served) == ["jobs"]
    tensors, facts = served.folder.load_model()
    served.folder.save_model("learned", {n: t + 1 for n, t in tensors.items()}, facts)
    served.folder.write_erased([])
    (served.folder.path / "notes.txt").write_text("north-1")
    receipt = served.receipts / "receipt-000001.json"
    receipt.write_text(receipt.read_text().replace("north-1", "north-2", 1))
    assert wrong(served) == ["model in service", "tombstones", "receipts", "leftovers", "jobs"]


def test_a_damaged_ledger_is_the_first_thing_told(served: Store) -> None:
    served.ledger.file.write_bytes(served.ledger.file.read_bytes()[:5000])
    with pytest.raises(UserError, match="is damaged"):
        audit(served)


def test_what_the_policy_keeps_is_no_leftover(make_store: MakeStore) -> None:
    store = make_store(LENIENT + "[purge]\nold_model = 'keep'\ncheckpoints = 'keep'\n")
    file_request(store, "client:north-1")
    run(store, [1], "not", SHORT)
    assert any(b"north-1" in file.read_bytes() for file in store.folder.checkpoints.iterdir())
    assert wrong(store) == []
