import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foul.erasure.receipts import issue_receipt, rotate_key
from foul.erasure.receipts.chain import (
    RECEIPT_NAME,
    page_problem,
    read_chain,
    read_link,
    receipt_file,
)
from foul.erasure.receipts.signed import sign

from .flips import flipped_bytes
from .statements import withdrawal


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four receipts, the third of them a rotation; do not change them."""
    store = tmp_path_factory.mktemp("store")
    issue_receipt(store, withdrawal(1))
    issue_receipt(store, withdrawal(2))
    rotate_key(store)
    issue_receipt(store, withdrawal(4))
    return store / "receipts"


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "receipts")


def both(folder: Path, number: int) -> tuple[Path, Path]:
    file = receipt_file(folder, number)
    return file, file.with_suffix(".html")


def test_a_whole_chain_has_no_problems(folder: Path) -> None:
    chain = read_chain(folder)
    assert chain.problems == []
    assert [link.number for link in chain.links] == [1, 2, 3, 4]
    assert not chain.head_behind


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_receipt_is_named(folder: Path, number: int) -> None:
    for file in both(folder, number):
        file.unlink()
    assert f"receipt {number} is missing" in read_chain(folder).problems


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_receipts_removed_from_the_end_are_noticed(folder: Path, kept: int) -> None:
    for number in range(kept + 1, 5):
        for file in both(folder, number):
            file.unlink()
    (problem,) = read_chain(folder).problems
    assert problem == (
        f"head.json tells of 4 receipts, the last one here is number {kept}: receipts were removed"
    )


def test_receipts_that_changed_places_are_named(folder: Path) -> None:
    for first, second in zip(both(folder, 1), both(folder, 2), strict=True):
        one, two = first.read_bytes(), second.read_bytes()
        first.write_bytes(two)
        second.write_bytes(one)
    assert read_chain(folder).problems == [
        "receipt-000001.json is receipt 2, not 1",
        "receipt-000002.json is receipt 1, not 2",
    ]


def test_a_receipt_of_another_chain_does_not_fit(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    issue_receipt(other, withdrawal(1, federation="elsewhere"))
    for theirs, ours in zip(both(other / "receipts", 1), both(folder, 1), strict=True):
        shutil.copy(theirs, ours)
    assert read_chain(folder).problems == [
        "receipt 2 does not follow receipt 1 of this folder",
        "receipt 2 is signed by a key that receipt 1 did not name",
        "receipt 2 is of another federation than receipt 1",
    ]


def test_a_receipt_forged_with_another_key_does_not_fit(folder: Path) -> None:
    """Somebody without the key goes on with the chain, page, hash and all."""
    last = read_link(receipt_file(folder, 4))
    content = last.content | {"number": 5, "previous": last.sha256}
    file, page = both(folder, 5)
    file.write_bytes(sign(RECEIPT_NAME, content, Ed25519PrivateKey.generate()))
    shutil.copy(last.page, page)
    assert "receipt 5 is signed by a key that receipt 4 did not name" in read_chain(folder).problems


def test_a_chain_without_its_beginning_is_noticed(folder: Path, tmp_path: Path) -> None:
    """Receipt 2 as the first one: its number is signed."""
    for number in (1, 3, 4):
        for file in both(folder, number):
            file.unlink()
    assert read_chain(folder).problems[0] == "receipt 1 is missing"


def test_a_missing_or_damaged_head_is_noticed(folder: Path) -> None:
    head = folder / "head.json"
    data = head.read_bytes()
    head.write_bytes(data.replace(b'"number":4', b'"number":3'))
    assert read_chain(folder).problems == ["head.json: the signature does not fit: it was edited"]
    head.unlink()
    assert "head.json is missing" in read_chain(folder).problems[0]


def test_an_old_head_is_noticed(written: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    issue_receipt(store, withdrawal(1))
    old = (store / "receipts/head.json").read_bytes()
    issue_receipt(store, withdrawal(2))
    (store / "receipts/head.json").write_bytes(old)
    # One behind is what a kill leaves; two behind is not.
    assert read_chain(store / "receipts").head_behind
    assert read_chain(store / "receipts").problems == []
    (store / "receipts/head.json").unlink()
    shutil.copy(written / "head.json", store / "receipts/head.json")
    assert "receipts were removed" in read_chain(store / "receipts").problems[0]


def test_a_head_that_is_two_behind_is_noticed(folder: Path, written: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    issue_receipt(store, withdrawal(1))
    old = (store / "receipts/head.json").read_bytes()
    issue_receipt(store, withdrawal(2))
    issue_receipt(store, withdrawal(3))
    (store / "receipts/head.json").write_bytes(old)
    assert read_chain(store / "receipts").problems == [
        "head.json is older than the receipts of this folder"
    ]


def test_a_missing_page_is_named(folder: Path) -> None:
    both(folder, 2)[1].unlink()
    (problem,) = read_chain(folder).problems
    assert problem.startswith("receipt-000002.html cannot be read")


def test_every_changed_byte_of_a_page_is_found(folder: Path) -> None:
    link = read_link(receipt_file(folder, 1))
    assert page_problem(link) is None
    for place in flipped_bytes(link.page):
        assert page_problem(link), place
    assert page_problem(link) is None
