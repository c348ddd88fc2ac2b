"""A file in which one byte is wrong, each in turn."""

from collections.abc import Iterator
from pathlib import Path


def flipped_bytes(path: Path) -> Iterator[int]:
    """The places of a file, each while its byte is another one; in the end it is as before."""
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(path.read_bytes()):
            file.seek(place)
            file.write(bytes([byte ^ 1]))
            yield place
            file.seek(place)
            file.write(bytes([byte]))
