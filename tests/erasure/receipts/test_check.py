import shutil
from pathlib import Path

import pytest

from foul.erasure.receipts import Verdict, check_receipt, issue_receipt, rotate_key
from foul.erasure.receipts.keys import fingerprint, read_public, spaced
from foul.errors import UserError

from .flips import flipped_bytes
from .statements import erasure, withdrawal


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three receipts: an erasure, a rotation, a withdrawal; do not change them."""
    store = tmp_path_factory.mktemp("store")
    issue_receipt(store, erasure(1))
    shutil.copy(next((store / "keys").glob("*.pub.pem")), store / "old.pub.pem")
    rotate_key(store)
    issue_receipt(store, withdrawal(3))
    old = (store / "old.pub.pem").read_bytes()
    (new,) = (f for f in (store / "keys").glob("*.pub.pem") if f.read_bytes() != old)
    shutil.copy(new, store / "new.pub.pem")
    return store


@pytest.fixture
def copied(store: Path, tmp_path: Path) -> Path:
    """The first receipt alone, as it is handed over."""
    for file in (store / "receipts").glob("receipt-000001.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "receipt-000001.json"


def wrong(verdict: Verdict) -> list[str]:
    return [finding.text for finding in verdict.findings if not finding.ok]


def test_a_receipt_checks_out_alone(copied: Path, store: Path) -> None:
    verdict = check_receipt(copied, store / "old.pub.pem")
    assert verdict.ok
    assert verdict.anchored
    assert [finding.what for finding in verdict.findings] == ["signature", "page", "key"]
    assert verdict.fingerprint == fingerprint(read_public(store / "old.pub.pem"))
    assert verdict.statement["event"] == "erasure:R-0001"


def test_the_page_leads_to_its_receipt(copied: Path) -> None:
    verdict = check_receipt(copied.with_suffix(".html"))
    assert verdict.ok
    assert verdict.path == copied
    assert not verdict.anchored


def test_every_changed_byte_of_a_receipt_is_found(copied: Path) -> None:
    for place in flipped_bytes(copied):
        assert not check_receipt(copied).ok, place
    assert check_receipt(copied).ok


def test_a_changed_page_is_found(copied: Path) -> None:
    page = copied.with_suffix(".html")
    page.write_text(page.read_text().replace("0.512", "0.412"))
    assert wrong(check_receipt(copied)) == [
        "receipt-000001.html is not the page that was signed: it was edited"
    ]


def test_a_wrong_key_is_one_clear_line(copied: Path, store: Path) -> None:
    (line,) = wrong(check_receipt(copied, store / "new.pub.pem"))
    old = spaced(fingerprint(read_public(store / "old.pub.pem")))
    new = spaced(fingerprint(read_public(store / "new.pub.pem")))
    assert line == f"wrong key: it was signed with the key {old}, the given one is {new}"


@pytest.mark.parametrize("key", ["old", "new"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_within_its_chain_either_key_answers_for_every_receipt(
    store: Path, key: str, number: int
) -> None:
    file = store / f"receipts/receipt-00000{number}.json"
    verdict = check_receipt(file, store / f"{key}.pub.pem", store / "receipts")
    assert verdict.ok, wrong(verdict)
    assert verdict.findings[-1].text == f"it is number {number} of 3"


def test_a_strangers_receipt_is_not_covered_by_the_chain(store: Path, tmp_path: Path) -> None:
    """Whole in itself, but neither signed by the key nor one of the chain."""
    stranger = issue_receipt(tmp_path, erasure(1))
    verdict = check_receipt(stranger.json, store / "new.pub.pem", store / "receipts")
    assert [f.what for f in verdict.findings if not f.ok] == ["key", "place"]


def test_a_key_answers_for_nothing_in_a_broken_chain(store: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(store / "receipts", tmp_path / "receipts")
    (folder / "receipt-000002.json").unlink()
    verdict = check_receipt(folder / "receipt-000003.json", store / "old.pub.pem", folder)
    assert [f.what for f in verdict.findings if not f.ok] == ["key", "chain"]


def test_a_folder_is_checked_as_a_whole(store: Path, tmp_path: Path) -> None:
    assert check_receipt(store / "receipts", store / "old.pub.pem").ok
    other = issue_receipt(tmp_path, withdrawal(1))
    public = next((tmp_path / "keys").glob("*.pub.pem"))
    assert wrong(check_receipt(store / "receipts", public))[0].startswith("wrong key")
    other.json.write_bytes(b"{}")
    assert wrong(check_receipt(tmp_path / "receipts")) == [
        "receipt-000001.json: it is not a signed document of foul"
    ]


def test_what_cannot_be_checked_is_named(tmp_path: Path, copied: Path) -> None:
    with pytest.raises(UserError, match=r"There is no receipt .*none\.json"):
        check_receipt(tmp_path / "none.html")
    with pytest.raises(UserError, match="is not a folder"):
        check_receipt(copied, None, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="There are no receipts in"):
        check_receipt(tmp_path / "empty")


def test_a_verdict_is_json(copied: Path) -> None:
    told = check_receipt(copied).to_dict()
    assert told["ok"] is True
    assert told["key_given"] is False
    assert told["findings"][0] == {
        "what": "signature",
        "ok": True,
        "text": "the facts are as they were signed",
    }
