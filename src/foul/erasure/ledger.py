"""The ledger: entries in SQLite, each holding the hash of the one before. Nothing is ever changed.

One table, one writer at a time (`BEGIN IMMEDIATE`), write-ahead log, flushed to disk. Whatever is
known of requests, jobs and versions is what the entries add up to (`state.py`), so that the chain
covers all of it: an edited, removed or truncated entry is found whenever the ledger is read.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from foul.erasure.clock import now
from foul.errors import FoulError, MachineError, UserError

SCHEMA = 1
"""Raised when an older foul could not read a newer ledger."""
NOTHING = "0" * 64
"""What the first entry holds as the hash of the one before."""
_APPLICATION = 0x464F554C
_PATIENCE = 20
"""Seconds to wait for another writer, who needs milliseconds."""

Body = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One thing that happened."""

    number: int
    time: str
    kind: str
    body: Body
    previous: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def hash_of(number: int, time: str, kind: str, body: Body, previous: str) -> str:
    """SHA-256 of an entry as canonical JSON."""
    content = {"number": number, "time": time, "kind": kind, "body": body, "previous": previous}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


class Ledger:
    """The entries of one federation, in one file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def create(cls, file: Path, kind: str, body: Body) -> "Ledger":
        """A ledger with its first entry. Made beside its place and renamed: whole or not there."""
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.unlink(missing_ok=True)
        ledger = cls(temporary)
        with ledger._explained(), closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={SCHEMA}")
            connection.executescript(_TABLES)
            _insert(connection, _next([], kind, body))
            connection.commit()
        os.replace(temporary, file)
        return cls(file)

    def entries(self) -> list[Entry]:
        """All entries, their chain checked.

        Raises:
            UserError: the ledger is gone, damaged, edited, or of a newer foul.
        """
        with self._connected() as connection:
            return self._checked(connection)

    def append(self, decide: Callable[[Sequence[Entry]], tuple[str, Body]]) -> Entry:
        """Add what `decide` makes of the entries so far; nobody else writes in between.

        Raises:
            UserError: as `entries`, or whatever `decide` raises; then nothing is added.
            MachineError: the disk is full.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            entries = self._checked(connection)
            entry = _next(entries, *decide(entries))
            _insert(connection, entry)
            connection.commit()
        return entry

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if not self.file.is_file():
            raise UserError(f"There is no ledger at {self.file}", "Check the run folder.")
        with (
            self._explained(),
            closing(sqlite3.connect(self.file, timeout=_PATIENCE, isolation_level=None)) as opened,
        ):
            opened.execute("PRAGMA synchronous=FULL")
            opened.execute("PRAGMA secure_delete=ON")
            yield opened

    def _checked(self, connection: sqlite3.Connection) -> list[Entry]:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA:
            raise UserError(
                f"{self.file} was written by a newer foul (ledger version {version}, "
                f"this one reads {SCHEMA})",
                "Use the newer foul; nothing was changed.",
            )
        if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise self._damaged("its pages do not agree")
        entries: list[Entry] = []
        previous = NOTHING
        for row in connection.execute(_READ):
            entry = self._entry(row)
            expected = hash_of(len(entries) + 1, entry.time, entry.kind, entry.body, previous)
            if (entry.number, entry.previous, entry.hash) != (len(entries) + 1, previous, expected):
                raise self._damaged(f"entry {entry.number} was changed, or one before it is gone")
            entries.append(entry)
            previous = entry.hash
        head = connection.execute("SELECT number, hash FROM head").fetchone()
        if not entries or head != (len(entries), previous):
            raise self._damaged("entries at its end are gone")
        return entries

    def _entry(self, row: tuple[int, str, str, str, str, str]) -> Entry:
        try:
            return Entry(row[0], row[1], row[2], json.loads(row[3]), row[4], row[5])
        except ValueError:
            raise self._damaged(f"entry {row[0]} is no JSON") from None

    def _damaged(self, why: str) -> UserError:
        return UserError(
            f"The ledger {self.file} is damaged: {why}",
            "Put back a backup of it. Nothing was changed; the model in service is as it was.",
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in words."""
        try:
            yield
        except FoulError:
            raise
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY:
                raise UserError(
                    f"{self.file} is in use by another process", "Try again when it has ended."
                ) from error
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise MachineError(
                    f"{self.file} could not be written ({error})",
                    "Free some space and ask once more; the model in service is as it was.",
                ) from error
            if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise MachineError(
                    f"{self.file} could not be opened ({error})", "Check its folder."
                ) from error
            raise self._damaged(str(error)) from error


_TABLES = """
CREATE TABLE entries (
  number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
  previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER, hash TEXT);
"""
_READ = "SELECT number, time, kind, body, previous, hash FROM entries ORDER BY number"


def _next(entries: Sequence[Entry], kind: str, body: Body) -> Entry:
    # As it will be read again, so that its hash is that of what is stored.
    body = json.loads(json.dumps(body, allow_nan=False))
    number, time = len(entries) + 1, now()
    previous = entries[-1].hash if entries else NOTHING
    return Entry(number, time, kind, body, previous, hash_of(number, time, kind, body, previous))


def _insert(connection: sqlite3.Connection, entry: Entry) -> None:
    row = (
        entry.number,
        entry.time,
        entry.kind,
        json.dumps(entry.body, sort_keys=True),
        entry.previous,
        entry.hash,
    )
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (entry.number, entry.hash))
