"""Remove what delivered messages left in the SuperLink's database."""

import sqlite3
from contextlib import closing
from pathlib import Path

from foul.errors import UserError


def purge_database(path: Path) -> tuple[int, int]:
    """Write the database anew without its freed pages; its size in bytes before and after.

    Updates of clients pass through it. SQLite keeps the pages of deleted rows, and on many systems
    their content. The write-ahead log is emptied too.

    Raises:
        UserError: there is no database, or something uses it.
    """
    if not path.is_file():
        raise UserError(f"{path} is not there", "A SuperLink that never ran has nothing to purge.")
    before = _size(path)
    try:
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as database:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        raise UserError(
            f"{path} cannot be purged ({error})", "Stop the SuperLink first."
        ) from error
    return before, _size(path)


def _size(path: Path) -> int:
    """With the write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
