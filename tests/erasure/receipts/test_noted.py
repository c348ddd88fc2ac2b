import shutil
from pathlib import Path

from foul.erasure.ledger import Entry
from foul.erasure.receipts import Receipt, issue_receipt
from foul.erasure.receipts.chain import read_chain
from foul.erasure.receipts.noted import noted_chain

from .statements import withdrawal


def noted(receipt: Receipt) -> Entry:
    """What the ledger holds of it."""
    body = {"request": 1, "receipt": receipt.number, "sha256": receipt.sha256}
    return Entry(1, "2026-11-16T06:00:00Z", "issued", body, "", "")


def test_a_folder_that_was_put_back_to_an_earlier_day_is_noticed(tmp_path: Path) -> None:
    """Whole in itself, head and all; only the ledger knows better."""
    first = issue_receipt(tmp_path, withdrawal(1))
    old = shutil.copytree(tmp_path / "receipts", tmp_path / "old")
    entries = [noted(first), noted(issue_receipt(tmp_path, withdrawal(2)))]
    assert noted_chain(tmp_path / "receipts", entries).problems == []
    assert read_chain(old).problems == []
    assert noted_chain(old, entries).problems == [
        "receipt 2 is not the one that the ledger has noted"
    ]


def test_a_chain_of_another_key_is_noticed(tmp_path: Path) -> None:
    entries = [noted(issue_receipt(tmp_path / "own", withdrawal(1)))]
    issue_receipt(tmp_path / "other", withdrawal(1))
    (problem,) = noted_chain(tmp_path / "other/receipts", entries).problems
    assert problem == "receipt 1 is not the one that the ledger has noted"


def test_a_receipt_that_is_not_noted_yet_is_no_problem(tmp_path: Path) -> None:
    """It is written first and noted then: a kill may come in between."""
    issue_receipt(tmp_path, withdrawal(1))
    assert noted_chain(tmp_path / "receipts", []).problems == []


def test_an_empty_folder_is_noticed_where_receipts_were_noted(tmp_path: Path) -> None:
    entries = [noted(issue_receipt(tmp_path, withdrawal(1)))]
    shutil.rmtree(tmp_path / "receipts")
    assert len(noted_chain(tmp_path / "receipts", entries).problems) == 1
