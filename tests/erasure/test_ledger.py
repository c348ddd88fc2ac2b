import json
import sqlite3
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from foul.erasure.ledger import NOTHING, SCHEMA, Ledger
from foul.errors import MachineError, UserError


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.sqlite", "adopted", {"hash": "ab"})
    for number in range(4):
        made.append(lambda _, n=number: ("filed", {"request": n, "reason": "a'ü\n"}))  # type: ignore[misc]
    return made


def change(ledger: Ledger, statement: str, *values: object) -> None:
    with sqlite3.connect(ledger.file) as connection:
        connection.execute(statement, values)
    connection.close()


def test_every_entry_holds_the_hash_of_the_one_before(ledger: Ledger) -> None:
    entries = ledger.entries()
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.previous for entry in entries] == [NOTHING, *(e.hash for e in entries[:-1])]
    for entry in entries:
        content = {k: v for k, v in entry.to_dict().items() if k != "hash"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert sha256(text.encode()).hexdigest() == entry.hash


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE entries SET body = replace(body, '2', '7') WHERE number = 4", "entry 4 was"),
        ("UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE number = 2", "entry 2 was"),
        ("UPDATE entries SET kind = 'finished' WHERE number = 5", "entry 5 was"),
        ("UPDATE entries SET body = '{' WHERE number = 3", "entry 3 is no JSON"),
        ("DELETE FROM entries WHERE number = 1", "entry 2 was changed, or one before"),
        ("DELETE FROM entries WHERE number = 3", "entry 4 was changed, or one before"),
        ("DELETE FROM entries WHERE number = 5", "entries at its end are gone"),
        ("DELETE FROM entries", "entries at its end are gone"),
        ("DROP TABLE entries", "no such table"),
    ],
)
def test_an_edited_ledger_is_found_and_not_written_to(
    ledger: Ledger, statement: str, told: str
) -> None:
    change(ledger, statement)
    with pytest.raises(UserError, match=rf"is damaged: .*{told}.*Put back a backup"):
        ledger.entries()
    with pytest.raises(UserError, match="is damaged"):
        ledger.append(lambda _: ("filed", {}))


@pytest.mark.parametrize("size", [0, 10, 4096, 5000])
def test_a_truncated_ledger_is_found(ledger: Ledger, size: int) -> None:
    content = ledger.file.read_bytes()
    assert len(content) > size
    ledger.file.write_bytes(content[:size])
    with pytest.raises(UserError, match="is damaged"):
        ledger.entries()


def test_a_ledger_of_a_newer_foul_is_left_alone(ledger: Ledger) -> None:
    change(ledger, f"PRAGMA user_version={SCHEMA + 1}")
    before = ledger.file.read_bytes()
    with pytest.raises(UserError, match=rf"newer foul .*{SCHEMA + 1}.*reads {SCHEMA}"):
        ledger.append(lambda _: ("filed", {}))
    assert ledger.file.read_bytes() == before


def test_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no ledger at"):
        Ledger(tmp_path / "ledger.sqlite").entries()


def test_a_refused_entry_leaves_no_trace(ledger: Ledger) -> None:
    def refuse(entries: object) -> tuple[str, dict[str, object]]:
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        ledger.append(refuse)
    assert len(ledger.entries()) == 5


def test_writers_at_the_same_time_wait_for_each_other(ledger: Ledger) -> None:
    def write() -> None:
        for _ in range(4):
            ledger.append(lambda entries: ("filed", {"request": len(entries)}))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.body["request"] for entry in ledger.entries()[5:]] == list(range(5, 21))


def connecting(
    monkeypatch: pytest.MonkeyPatch, prepare: Callable[[sqlite3.Connection], object], **more: Any
) -> None:
    real = sqlite3.connect

    def connect(*arguments: Any, **values: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*arguments, **{**values, **more})
        prepare(connection)
        return connection

    monkeypatch.setattr("foul.erasure.ledger.sqlite3.connect", connect)


def test_a_full_disk_is_told_and_nothing_is_lost(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # SQLite itself then finds that it has no page left.
        connecting(patch, lambda connection: connection.execute("PRAGMA max_page_count=1"))
        with pytest.raises(MachineError, match=r"could not be written .*disk is full"):
            ledger.append(lambda _: ("filed", {"text": "x" * 100_000}))
    assert len(ledger.entries()) == 5


def test_a_ledger_that_another_process_holds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(ledger.file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        connecting(monkeypatch, lambda _: None, timeout=0.01)
        assert len(ledger.entries()) == 5
        with pytest.raises(UserError, match="in use by another process"):
            ledger.append(lambda _: ("filed", {}))
    other.close()
