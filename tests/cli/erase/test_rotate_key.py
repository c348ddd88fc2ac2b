from pathlib import Path

from erasure.receipts.statements import withdrawal

from cli.conftest import Foul
from foul.erasure.receipts import issue_receipt
from foul.erasure.receipts.keys import fingerprint, read_public

from .conftest import key, receipt


def test_a_key_is_replaced(foul: Foul, store: Path) -> None:
    old = key(store)
    told = foul("erase", "rotate-key", store.parent, "--json").json
    assert told["receipt"] == str(receipt(store, 3))
    new = store / f"keys/{told['fingerprint'][:16]}.pub.pem"
    assert fingerprint(read_public(new)) == told["fingerprint"]
    issue_receipt(store, withdrawal(4))
    for known in (old, new):
        chain = ("--chain", store / "receipts", "--key", known)
        assert foul("erase", "check", receipt(store, 4), *chain).code == 0
    assert "Give away" in foul("erase", "rotate-key", store.parent).out


def test_a_run_without_a_key_is_named(foul: Foul, tmp_path: Path) -> None:
    line = foul("erase", "rotate-key", tmp_path).error()
    assert "has no erasure requests, so no key" in line
