"""One process at a time: a lock that ends with its holder, however that ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foul.errors import UserError
from foul.runs.atomic import not_written


@contextmanager
def alone(path: Path, busy: UserError) -> Iterator[None]:
    """Hold this file for this process alone.

    Raises:
        UserError: `busy`, if another process holds it.
        MachineError: the file cannot be written.
    """
    try:
        handle = path.open("w")
    except OSError as error:
        raise not_written(path, error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield
