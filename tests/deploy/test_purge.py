"""Deleted messages leave no bytes behind."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
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
            purge_database(path, patience=0.1)


def test_without_a_database_there_is_nothing_to_purge(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not there"):
        purge_database(tmp_path / "superlink.db")


Fill = Callable[..., Path]
OWN = 2**64 - 3
"""A run's number as Flower has it; SQLite has -3."""


@pytest.fixture
def superlink(tmp_path: Path) -> Fill:
    """Makes a database with the tables of the installed Flower and some runs in it."""
    pytest.importorskip("flwr", reason="needs foul[flower]")
    from flwr.supercore.state.schema import (
        corestate_tables,
        linkstate_tables,
        objectstore_tables,
    )
    from sqlalchemy import create_engine

    path = tmp_path / "superlink.db"
    engine = create_engine(f"sqlite:///{path}")
    for metadata in (
        linkstate_tables.create_linkstate_metadata(),
        corestate_tables.create_corestate_metadata(),
        objectstore_tables.create_objectstore_metadata(),
    ):
        metadata.create_all(engine)
    engine.dispose()

    def fill(over: Sequence[int], under_way: Sequence[int]) -> Path:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("INSERT INTO objects VALUES ('shared', 'shared', 1, ?)", (2,))
            for run in (*over, *under_way):
                finished = "2026-11-16 09:41:20" if run in over else None
                database.execute(
                    "INSERT INTO task (task_id, type, run_id, pending_at, finished_at)"
                    " VALUES (?, 'flwr-serverapp', ?, '2026-11-16 09:36:53', ?)",
                    (run, run, finished),
                )
                database.execute(
                    "INSERT INTO run (run_id, primary_task_id) VALUES (?, ?)", (run, run)
                )
                for table in ("message_ins", "message_res"):
                    database.execute(
                        f"INSERT INTO {table} (message_id, run_id) VALUES (?, ?)",
                        (f"{table} {run}", run),
                    )
                content = f"update in run {run}. ".encode() * 1000
                database.execute("INSERT INTO objects VALUES (?, ?, 1, 0)", (f"o {run}", content))
                for name in (f"o {run}", "shared"):
                    database.execute("INSERT INTO run_objects VALUES (?, ?)", (run, name))
                database.execute("INSERT INTO object_children VALUES (?, 'shared')", (f"o {run}",))
        return path

    return fill


def rows(path: Path, query: str) -> list[object]:
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute(query).fetchall()]


def test_messages_of_a_run_that_was_killed_go_and_others_stay(superlink: Fill) -> None:
    path = superlink(over=[1], under_way=[2])
    purge_database(path)
    for table in ("message_ins", "message_res"):
        assert rows(path, f"SELECT message_id FROM {table}") == [f"{table} 2"]
    assert rows(path, "SELECT object_id FROM objects ORDER BY 1") == ["o 2", "shared"]
    assert rows(path, "SELECT ref_count FROM objects ORDER BY object_id") == [0, 1]
    assert rows(path, "SELECT parent_id FROM object_children") == ["o 2"]
    assert rows(path, "SELECT run_id FROM run ORDER BY 1") == [1, 2]
    left = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"update in run 1" not in left
    assert b"update in run 2" in left


def test_our_own_messages_go_while_we_run(superlink: Fill) -> None:
    path = superlink(over=[], under_way=[-3, 2])
    purge_database(path, OWN)
    assert rows(path, "SELECT run_id FROM message_ins") == [2]
    assert rows(path, "SELECT object_id FROM objects ORDER BY 1") == ["o 2", "shared"]
    assert rows(path, "SELECT finished_at FROM task") == [None, None]


def test_a_superlink_that_is_up_is_waited_for(superlink: Fill) -> None:
    path = superlink(over=[1], under_way=[2])
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM objects").fetchone()
    with pytest.raises(UserError, match=r"write-ahead log is in use.*Stop the SuperLink"):
        purge_database(path, patience=0.1)
    ending = threading.Timer(0.2, reader.execute, ["COMMIT"])
    ending.start()
    purge_database(path)
    ending.join()
    assert path.with_name("superlink.db-wal").stat().st_size == 0
    assert b"update in run 1" not in path.read_bytes()
    # It goes on with what is there now.
    assert reader.execute("SELECT COUNT(*) FROM objects").fetchone() == (2,)
    reader.close()


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "superlink.db").write_bytes(b"hello" * 1000)
    with pytest.raises(UserError, match=r"superlink\.db cannot be purged \(file is not a database"):
        purge_database(tmp_path / "superlink.db")
