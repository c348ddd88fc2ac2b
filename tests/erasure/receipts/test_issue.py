import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foul.erasure.receipts import check_receipt, find_receipt, issue_receipt, rotate_key
from foul.erasure.receipts.canonical import sha256
from foul.errors import MachineError, UserError
from foul.runs import atomic

from .statements import erasure, withdrawal


class Killed(BaseException):
    """What kill -9 looks like from inside."""


def dying_after(steps: int, replace: Callable[..., None]) -> Callable[..., None]:
    """A rename that is the last thing a process does, when its turn comes."""
    left = steps

    def dying(source: Path, target: Path) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        replace(source, target)
        left -= 1
        if left == 0:
            raise Killed

    return dying


def receipts(store: Path) -> list[str]:
    return sorted(file.name for file in (store / "receipts").glob("receipt-*"))


def signed(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_bytes())["signed"])


def test_receipts_follow_each_other(tmp_path: Path) -> None:
    first = issue_receipt(tmp_path, withdrawal(1))
    second = issue_receipt(tmp_path, erasure(2))
    assert [first.number, second.number] == [1, 2]
    assert signed(first.json)["previous"] == ""
    assert signed(second.json)["previous"] == sha256(first.json.read_bytes()) == first.sha256
    assert signed(second.json)["page"] == sha256(second.html.read_bytes())
    assert signed(second.json)["statement"]["event"] == "erasure:R-0002"


def test_an_event_has_one_receipt(tmp_path: Path) -> None:
    first = issue_receipt(tmp_path, withdrawal(1))
    issue_receipt(tmp_path, withdrawal(2))
    assert issue_receipt(tmp_path, withdrawal(1, outcome="told otherwise")) == first
    assert find_receipt(tmp_path, "withdrawal:R-0001") == first
    assert find_receipt(tmp_path, "withdrawal:R-0009") is None
    assert len(receipts(tmp_path)) == 4


@pytest.mark.parametrize("steps", range(4))
def test_a_kill_between_any_two_writes_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    issue_receipt(tmp_path, withdrawal(1))
    monkeypatch.setattr(os, "replace", dying_after(steps, os.replace))
    with suppress(Killed):
        issue_receipt(tmp_path, withdrawal(2))
    monkeypatch.undo()
    assert issue_receipt(tmp_path, withdrawal(2)).number == 2
    assert issue_receipt(tmp_path, withdrawal(3)).number == 3
    assert check_receipt(tmp_path / "receipts").ok
    assert len(receipts(tmp_path)) == 6


def test_two_who_issue_at_once_wait_for_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        issued = list(pool.map(lambda n: issue_receipt(tmp_path, withdrawal(n)), range(1, 9)))
    assert sorted(receipt.number for receipt in issued) == list(range(1, 9))
    assert check_receipt(tmp_path / "receipts").ok


def test_a_full_disk_leaves_the_receipts_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue_receipt(tmp_path, withdrawal(1))

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "_sync", full)
    with pytest.raises(MachineError, match="disk is full"):
        issue_receipt(tmp_path, withdrawal(2))
    monkeypatch.undo()
    assert receipts(tmp_path) == ["receipt-000001.html", "receipt-000001.json"]
    assert check_receipt(tmp_path / "receipts").ok


def test_nothing_is_added_to_a_chain_that_was_tampered_with(tmp_path: Path) -> None:
    first = issue_receipt(tmp_path, withdrawal(1))
    first.html.write_text("another page")
    with pytest.raises(UserError, match=r"not as they were written: receipt-000001\.html"):
        issue_receipt(tmp_path, withdrawal(2))
    assert len(receipts(tmp_path)) == 2


def test_another_key_does_not_go_on_with_a_chain(tmp_path: Path) -> None:
    issue_receipt(tmp_path, withdrawal(1))
    (tmp_path / "keys/current.pem").unlink()
    with pytest.raises(UserError, match="is not the key that signed the receipts before"):
        issue_receipt(tmp_path, withdrawal(2))


def test_a_new_key_is_named_by_the_old_one(tmp_path: Path) -> None:
    first = issue_receipt(tmp_path, withdrawal(1))
    rotation = rotate_key(tmp_path)
    third = issue_receipt(tmp_path, withdrawal(3))
    old, new = signed(first.json)["key"], signed(third.json)["key"]
    assert old != new
    assert signed(rotation.json)["key"] == old
    assert signed(rotation.json)["statement"]["new_key"] == new
    assert len(list((tmp_path / "keys").glob("*.pub.pem"))) == 2
    assert not (tmp_path / "keys/next.pem").exists()
    assert check_receipt(tmp_path / "receipts").ok


def test_a_new_key_answers_for_the_chain_at_once(tmp_path: Path) -> None:
    issue_receipt(tmp_path, withdrawal(1))
    old = next((tmp_path / "keys").glob("*.pub.pem"))
    rotate_key(tmp_path)
    (new,) = (file for file in (tmp_path / "keys").glob("*.pub.pem") if file != old)
    for key in (old, new):
        assert check_receipt(tmp_path / "receipts", key).ok


@pytest.mark.parametrize("steps", range(8))
def test_a_rotation_that_was_killed_is_finished_or_was_never_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    issue_receipt(tmp_path, withdrawal(1))
    monkeypatch.setattr(os, "replace", dying_after(steps, os.replace))
    with suppress(Killed):
        rotate_key(tmp_path)
    monkeypatch.undo()
    last = issue_receipt(tmp_path, withdrawal(2))
    verdict = check_receipt(tmp_path / "receipts")
    assert verdict.ok, verdict.findings
    assert last.number in (2, 3)


def test_there_is_no_key_to_replace_before_anything_was_signed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has signed nothing yet"):
        rotate_key(tmp_path)
