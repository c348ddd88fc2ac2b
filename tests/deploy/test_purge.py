"""Deleted messages leave no bytes behind."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from foul.deploy.purge import purge_database
from foul.errors import UserError

UPDATE = b"an update of the erased client " * 3000


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_bytes_of_deleted_rows_are_gone(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "superlink.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE objects (content BLOB)")
        database.execute("CREATE TABLE node (name TEXT)")
        database.execute("INSERT INTO node VALUES ('north-0')")
        database.execute("INSERT INTO objects VALUES (?)", (UPDATE,))
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("DELETE FROM objects")
    # Without the purge it could be read: the test would notice a purge that does nothing.
    assert b"the erased client" in path.read_bytes()
    before, after = purge_database(path)
    assert after < before
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"the erased client" not in left
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT name FROM node").fetchall() == [("north-0",)]


def test_a_database_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "superlink.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE objects (content BLOB)")
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="Stop the SuperLink first"):
            purge_database(path)


def test_without_a_database_there_is_nothing_to_purge(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not there"):
        purge_database(tmp_path / "superlink.db")
