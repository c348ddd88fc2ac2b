"""Looking for what must be gone: names of clients, and samples of the bytes that were purged."""

import json
import mmap
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foul.seeds import numpy_generator

WINDOW = 32
"""Bytes of a sample: no two tensors share so many by chance."""
PER_FILE = 8
"""Samples of each purged file."""
_VARIED = 20
"""Different bytes a sample must have: zeros and constants are everywhere."""
_BINARY = (".safetensors", ".npy")
"""Their content is numbers, in which a short name may occur by chance."""


@dataclass(frozen=True)
class Trace:
    """Something that should be gone, and where it still is."""

    file: str
    what: str


def sample_windows(file: Path, kept: bytes, seed: int = 0) -> list[bytes]:
    """Samples of the numbers in a file that are told apart from everything that may stay; headers
    and texts are alike in many files.

    Args:
        kept: what stays in service: parts that a method leaves alone are in both.
    """
    if file.suffix not in _BINARY:
        return []
    with _mapped(file) as content:
        start = _header(file, content)
        if len(content) < start + 2 * WINDOW:
            return []
        rng = numpy_generator(seed, "purge", client=file.name)
        places = rng.integers(start, len(content) - WINDOW, size=8 * PER_FILE)
        found: list[bytes] = []
        for place in places:
            window = bytes(content[place : place + WINDOW])
            if len(found) < PER_FILE and len(set(window)) >= _VARIED and kept.find(window) < 0:
                found.append(window)
        return found


def name_pattern(erased: Collection[str], others: Iterable[str]) -> "re.Pattern[bytes]":
    """Matches ids as whole words; an erased one is its group 1. Where one id is a part of another,
    the longer one counts."""
    marked = {name: f"({_spelled(name)})" for name in erased}
    every = marked | {name: _spelled(name) for name in others if name not in erased}
    parts = [every[name] for name in sorted(every, key=lambda n: (-len(n), n))]
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(parts)})(?![A-Za-z0-9_])".encode())


def _spelled(name: str) -> str:
    """The name as texts have it, and as JSON escapes it."""
    return "|".join(re.escape(text) for text in dict.fromkeys((name, json.dumps(name)[1:-1])))


def search(
    files: Sequence[tuple[Path, str]],
    names: "re.Pattern[bytes]",
    windows: Sequence[bytes],
    progress: Callable[[int, int], None],
) -> tuple[list[Trace], int]:
    """Where names and windows are still found, and how many bytes were searched.

    Args:
        files: each with how it is told; a told path is searched for names, too.
    """
    found: list[Trace] = []
    total = 0
    for number, (file, told) in enumerate(files):
        progress(number, len(files))
        if _names(names, told.encode()):
            found.append(Trace(told, "its name"))
        with _mapped(file) as content:
            total += len(content)
            if any(content.find(window) >= 0 for window in windows):
                found.append(Trace(told, "purged bytes"))
            if _names(names, _text(file, content)):
                found.append(Trace(told, "the name of an erased client"))
    progress(len(files), len(files))
    return found, total


Content = bytes | mmap.mmap


def _names(pattern: "re.Pattern[bytes]", text: Content) -> bool:
    return any(any(match.groups()) for match in pattern.finditer(text))


def _text(file: Path, content: Content) -> Content:
    """What of a file may name somebody: of numbers, only the header."""
    return content[: _header(file, content)] if file.suffix in _BINARY else content


def _header(file: Path, content: Content) -> int:
    """Bytes before the numbers begin."""
    if file.suffix == ".npy":
        return min(128, len(content))
    length = int(np.frombuffer(content[:8], "<u8")[0]) if len(content) >= 8 else 0
    return min(8 + length, len(content))


@contextmanager
def _mapped(file: Path) -> Iterator[Content]:
    with file.open("rb") as handle:
        if not file.stat().st_size:
            yield b""
            return
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
