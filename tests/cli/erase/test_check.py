from pathlib import Path

from erasure.receipts.statements import withdrawal

from cli.conftest import Foul
from foul.erasure.receipts import issue_receipt
from foul.erasure.receipts.keys import fingerprint, read_public, spaced

from .conftest import key, receipt


def test_a_receipt_checks_out(foul: Foul, store: Path) -> None:
    told = foul("erase", "check", receipt(store), "--key", key(store))
    assert told.code == 0
    assert "WRONG" not in told.out
    assert told.out.endswith(f"{receipt(store)} checks out.\n")


def test_without_a_key_it_only_says_that_it_is_consistent(foul: Foul, store: Path) -> None:
    told = foul("erase", "check", receipt(store))
    assert told.code == 0
    assert "is consistent in itself. Who signed it, this cannot tell" in told.out
    assert spaced(fingerprint(read_public(key(store)))) in told.out


def test_a_changed_receipt_does_not_check_out(foul: Foul, store: Path) -> None:
    page = receipt(store).with_suffix(".html")
    page.write_bytes(page.read_bytes().replace(b"0.512", b"0.412"))
    told = foul("erase", "check", page)
    assert told.code == 1
    assert "WRONG  page: receipt-000001.html is not the page that was signed" in told.out
    assert told.out.endswith("does not check out.\n")


def test_a_removed_receipt_is_found_in_the_chain(foul: Foul, store: Path) -> None:
    assert foul("erase", "check", receipt(store), "--chain", store / "receipts").code == 0
    receipt(store, 2).unlink()
    told = foul("erase", "check", receipt(store), "--chain", store / "receipts")
    assert told.code == 1
    assert "WRONG  chain: head.json tells of 2 receipts" in told.out


def test_a_run_folder_means_its_receipts(foul: Foul, store: Path) -> None:
    told = foul("erase", "check", store.parent, "--key", key(store))
    assert told.code == 0
    assert "chain: 2 receipts, complete and in order" in told.out


def test_a_wrong_key_is_one_clear_line(foul: Foul, store: Path, tmp_path: Path) -> None:
    issue_receipt(tmp_path / "other", withdrawal(1))
    told = foul("erase", "check", receipt(store), "--key", key(tmp_path / "other"))
    assert told.code == 1
    assert [line for line in told.out.splitlines() if "WRONG" in line] == [
        f"WRONG  key: wrong key: it was signed with the key"
        f" {spaced(fingerprint(read_public(key(store))))}, the given one is"
        f" {spaced(fingerprint(read_public(key(tmp_path / 'other'))))}"
    ]


def test_what_cannot_be_checked_is_an_error_of_its_own(foul: Foul, store: Path) -> None:
    assert "There is no receipt" in foul("erase", "check", store / "none.json").error()
    line = foul("erase", "check", receipt(store), "--key", receipt(store)).error()
    assert "does not hold an Ed25519 public key" in line


def test_verdicts_are_json_for_programs(foul: Foul, store: Path) -> None:
    told = foul("erase", "check", receipt(store), "--json").json
    assert told["ok"] is True
    assert told["statement"]["event"] == "erasure:R-0001"
    receipt(store).write_bytes(b"{}")
    assert foul("erase", "check", receipt(store), "--json").code == 1
