"""Remove what messages left in the SuperLink's database.

Flower deletes messages when they have been fetched and when their run ends, but not those of a run
that was killed. SQLite then leaves the bytes of deleted rows in free pages and in its write-ahead
log. Models and the updates of clients pass through all of these.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from foul.errors import UserError

PATIENCE = 20.0
"""Seconds to wait for a SuperLink that is in the middle of something; its own calls wait 5."""

_TABLES = {"run", "task", "message_ins", "message_res", "objects", "object_children", "run_objects"}
"""Where Flower keeps messages; their tensors are `objects`, which several runs may share."""
_OVER = """
    SELECT run.run_id FROM run JOIN task ON task.task_id = run.primary_task_id
    WHERE task.finished_at IS NOT NULL OR run.run_id = :own
"""
_OF_RUNS = ("message_res", "message_ins", "run_objects")
_SHARED = (
    "DELETE FROM objects WHERE object_id NOT IN (SELECT object_id FROM run_objects)",
    "DELETE FROM object_children WHERE parent_id NOT IN (SELECT object_id FROM objects)",
    "UPDATE objects SET ref_count ="
    " (SELECT COUNT(*) FROM object_children WHERE child_id = objects.object_id)",
)


def purge_database(
    path: Path, own: int | None = None, patience: float = PATIENCE
) -> tuple[int, int]:
    """Delete the messages of runs that are over, and write the database anew without its freed
    pages; its size in bytes before and after. The write-ahead log is emptied too.

    A SuperLink may be up: it waits for the moment that this takes, and runs under way keep their
    messages.

    Args:
        own: a run under way that will fetch nothing any more: its messages go, too.
        patience: seconds to wait for others who use it.

    Raises:
        UserError: there is no database, or something uses it all the time.
    """
    if not path.is_file():
        raise UserError(f"{path} is not there", "A SuperLink that never ran has nothing to purge.")
    before = database_size(path)
    try:
        with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as database:
            database.execute("PRAGMA secure_delete = ON")
            _delete_messages(database, own)
            database.execute("VACUUM")
            _empty_log(database, patience)
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{path} cannot be purged ({error})", "Stop the SuperLink first."
        ) from error
    return before, database_size(path)


def database_size(path: Path) -> int:
    """Bytes of a database and its write-ahead log."""
    return sum(file.stat().st_size for file in database_files(path))


def database_files(path: Path) -> list[Path]:
    """The files in which a database has its rows, as far as they are there."""
    files = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal"))
    return [file for file in files if file.is_file()]


def _delete_messages(database: sqlite3.Connection, own: int | None) -> None:
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    if not {name for (name,) in found} >= _TABLES:
        return
    database.execute("BEGIN IMMEDIATE")
    with database:
        for table in _OF_RUNS:
            database.execute(
                f"DELETE FROM {table} WHERE run_id IN ({_OVER})", {"own": _signed(own)}
            )
        for statement in _SHARED:
            database.execute(statement)


def _signed(run: int | None) -> int | None:
    """Flower numbers runs with 64 bits without a sign, of which SQLite knows only signed ones."""
    return run - 2**64 if run is not None and run >= 2**63 else run


def _empty_log(database: sqlite3.Connection, patience: float) -> None:
    """Move the write-ahead log into the database and cut it off.

    Raises:
        sqlite3.OperationalError: somebody reads from it all the time.
    """
    until = time.monotonic() + patience
    while database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > until:
            raise sqlite3.OperationalError("its write-ahead log is in use")
        time.sleep(0.05)
