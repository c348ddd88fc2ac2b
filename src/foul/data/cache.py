"""Decoded images on disk: one memory-mapped uint8 array per domain and image size."""

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foul.data.decode import CorruptImage, Reader, decode, open_reader
from foul.data.folder import Image
from foul.errors import MachineError
from foul.names import slug

Progress = Callable[[int, int], None]

# Part of every folder name: raise it when the format or the decoding changes.
VERSION = 1
ABANDONED_SECONDS = 3600.0
CHUNK = 64


@dataclass(frozen=True)
class Decoded:
    """The decoded images of one listing.

    Attributes:
        images: uint8 ``[N, H, W, 3]``, one row per listed image, memory-mapped.
        corrupt: rows that could not be decoded; they are black.
    """

    images: Tensor
    corrupt: tuple[int, ...]


def cache_root(configured: Path | None) -> Path:
    """The configured folder, else FOUL_CACHE, else ~/.cache/foul."""
    if configured is not None:
        return configured.expanduser()
    return Path(os.environ.get("FOUL_CACHE") or "~/.cache/foul").expanduser()


def cached(
    cache: Path,
    root: Path,
    images: Sequence[Image],
    size: int,
    allow_corrupt: bool,
    progress: Progress | None = None,
) -> Decoded:
    """The decoded images, from the cache if it holds them, else decoded into it now.

    A damaged entry is built again. An entry with undecodable images counts only if these are
    allowed, so that a repaired file is looked at again.

    Args:
        cache: the cache folder.
        root: the data set's folder or zip.
        images: what to decode, of one domain.
        size: height and width.
        allow_corrupt: accept an entry with undecodable images.
        progress: called with (done, total) while decoding.

    Raises:
        MachineError: the cache cannot be written, for example because the disk is full.
    """
    entry = cache / f"images-v{VERSION}" / _entry_name(images, size)
    shape = (len(images), size, size, 3)
    found = _load(entry, shape)
    if found is not None and (allow_corrupt or not found.corrupt):
        return found
    try:
        _build(entry, root, images, size, progress)
    except OSError as error:
        raise _explain(error, cache, images, size) from error
    built = _load(entry, shape)
    if built is None:
        raise MachineError(f"The cache {entry} cannot be read back", "Delete it, check the disk")
    return built


def _entry_name(images: Sequence[Image], size: int) -> str:
    content = "\n".join(f"{image.path}\t{image.stamp}" for image in images)
    fingerprint = blake2b(content.encode(), digest_size=12).hexdigest()
    return f"{slug(images[0].domain)}-{size}px-{fingerprint}"


def _load(entry: Path, shape: tuple[int, ...]) -> Decoded | None:
    """The entry, or None if it is absent or damaged."""
    try:
        # Copy-on-write, because torch warns about arrays it may not write to.
        array = np.load(entry / "images.npy", mmap_mode="c")
        corrupt = tuple(json.loads((entry / "corrupt.json").read_text()))
    except (OSError, ValueError, EOFError):
        return None
    if array.shape != shape or array.dtype != np.uint8:
        return None
    return Decoded(torch.from_numpy(array), corrupt)


def _build(
    entry: Path, root: Path, images: Sequence[Image], size: int, progress: Progress | None
) -> None:
    """Decode under a temporary name in the same folder, then rename."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(entry)
    free = shutil.disk_usage(entry.parent).free
    if free < _bytes(images, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    temporary = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", dir=entry.parent))
    try:
        corrupt = _write_images(temporary / "images.npy", root, images, size, progress)
        _write_synced(temporary / "corrupt.json", json.dumps(corrupt).encode())
        # Another process may have built the same entry, or this one was damaged: ours is good.
        shutil.rmtree(entry, ignore_errors=True)
        temporary.replace(entry)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_images(
    path: Path, root: Path, images: Sequence[Image], size: int, progress: Progress | None
) -> list[int]:
    """Stream the decoded rows into a .npy file; returns the rows that are corrupt.

    Plain writes, not a memory map: on a full disk a write raises, a map kills the process.
    """
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(images), size, size, 3)}
    black = np.zeros((size, size, 3), np.uint8)
    corrupt = []
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for row, pixels in enumerate(_decoded(root, images, size)):
            if pixels is None:
                corrupt.append(row)
            file.write((black if pixels is None else pixels).tobytes())
            if progress:
                progress(row + 1, len(images))
        file.flush()
        os.fsync(file.fileno())
    return corrupt


def _decoded(root: Path, images: Sequence[Image], size: int) -> Iterator[NDArray[np.uint8] | None]:
    """The images in order, None for a corrupt one, a chunk at a time in memory."""

    def one(image: Image, read: Reader) -> NDArray[np.uint8] | None:
        try:
            return decode(read(image.path), size)
        except CorruptImage:
            return None

    with open_reader(root) as read, ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(images), CHUNK):
            yield from pool.map(lambda image: one(image, read), images[start : start + CHUNK])


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _remove_abandoned(entry: Path) -> None:
    """Delete what a killed process left; a living one has just written to its file."""
    for leftover in entry.parent.glob(f".{entry.name}.*"):
        newest = max((p.stat().st_mtime for p in leftover.iterdir()), default=0.0)
        if time.time() - newest > ABANDONED_SECONDS:
            shutil.rmtree(leftover, ignore_errors=True)


def _bytes(images: Sequence[Image], size: int) -> int:
    return len(images) * size * size * 3


def _explain(error: OSError, cache: Path, images: Sequence[Image], size: int) -> MachineError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MachineError(
            f"The disk of the cache {cache} is full: domain '{images[0].domain}' needs"
            f" {_bytes(images, size):,} bytes",
            "Free space, or set data.cache (or FOUL_CACHE) to a folder on another disk",
        )
    return MachineError(
        f"Cannot write the cache {cache}: {error.strerror}",
        "Set data.cache (or FOUL_CACHE) to a folder you may write to",
    )
