import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from foul.data.mnist import idx_digits
from foul.errors import UserError

IMAGES = np.arange(2 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(2, 28, 28)


def write_idx(path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    data = header + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_original_files_are_read(tmp_path: Path, end: str) -> None:
    write_idx(tmp_path / f"train-images-idx3-ubyte{end}", IMAGES)
    write_idx(tmp_path / f"train-labels-idx1-ubyte{end}", np.array([7, 2], np.uint8))
    images, digits = idx_digits(tmp_path)
    np.testing.assert_array_equal(images, IMAGES)
    assert digits.tolist() == [7, 2]
    assert digits.dtype == np.int64


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no train-images-idx3-ubyte.*data\.path"):
        idx_digits(tmp_path)


@pytest.mark.parametrize("keep", [2, 10, 500])
def test_a_truncated_file_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    write_idx(path, IMAGES)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte is not a complete IDX file"):
        idx_digits(tmp_path)


def test_a_damaged_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    write_idx(path, IMAGES)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="not a complete IDX file"):
        idx_digits(tmp_path)


def test_files_of_different_length_do_not_belong_together(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", IMAGES)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.array([7], np.uint8))
    with pytest.raises(UserError, match="do not belong together"):
        idx_digits(tmp_path)
