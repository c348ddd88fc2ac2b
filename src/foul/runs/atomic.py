"""Files that are either whole or not there: temp file, fsync, rename."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foul.errors import MachineError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well.

    Raises:
        MachineError: the disk is full or the folder cannot be written; `path` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _sync(temporary)
        # Opened before: once the file is there, another process may remove the folder.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.replace(temporary, path)
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def write_text(path: Path, text: str) -> None:
    """Replace the file's content as a whole."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    for file in folder.glob(".*.tmp"):
        file.unlink(missing_ok=True)


def not_written(path: Path, error: OSError) -> MachineError:
    """What to tell about a file that could not be written."""
    if error.errno == errno.ENOSPC:
        return MachineError(
            f"The disk is full: {path} could not be written",
            "Free some space; the same command goes on (learn: --resume). What was saved is whole.",
        )
    return MachineError(
        f"{path} could not be written ({error.strerror or error})", "Check its folder."
    )
