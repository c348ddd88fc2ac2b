"""Reading images from a folder or zip and decoding them to RGB squares."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from foul.errors import MachineError

Reader = Callable[[str], bytes]


class CorruptImage(Exception):
    """The bytes are not an image that Pillow can decode."""


@contextmanager
def open_reader(root: Path) -> Iterator[Reader]:
    """A function that reads a file below this folder, or in this zip, by its path."""
    if root.is_dir():
        yield lambda path: _read_file(root / path)
        return
    with zipfile.ZipFile(root) as archive:
        yield lambda path: _read_member(archive, path)


def decode(data: bytes, size: int | None) -> NDArray[np.uint8]:
    """The image as RGB ``[size, size, 3]``: a plain antialiased bilinear resize, no crop.

    Args:
        data: the file.
        size: height and width; None keeps those of the file.

    Raises:
        CorruptImage: it is no image, or a damaged one.
    """
    try:
        with PIL.Image.open(io.BytesIO(data)) as image:
            # Pillow warns when it drops the transparency of a palette directly.
            layered = image.mode == "P" and "transparency" in image.info
            rgb = (image.convert("RGBA") if layered else image).convert("RGB")
        if size is not None:
            rgb = rgb.resize((size, size), PIL.Image.Resampling.BILINEAR)
        return np.asarray(rgb)
    # Decoders of damaged files raise whatever their parser stumbles over.
    except Exception as error:
        raise CorruptImage(f"{type(error).__name__}: {error}") from error


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MachineError(f"Cannot read {path}: {error.strerror}", "Check the file") from error


def _read_member(archive: zipfile.ZipFile, path: str) -> bytes:
    try:
        return archive.read(path)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise CorruptImage(f"damaged in the zip: {error}") from error
