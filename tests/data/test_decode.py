import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foul.data.decode import CorruptImage, decode, open_reader
from foul.errors import MachineError


def encoded(image: PIL.Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def test_pixels_survive_at_their_own_size() -> None:
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    data = encoded(PIL.Image.fromarray(pixels))
    np.testing.assert_array_equal(decode(data, 4), pixels)
    np.testing.assert_array_equal(decode(data, None), pixels)


def test_shrinking_is_antialiased() -> None:
    stripes = np.zeros((16, 16, 3), np.uint8)
    stripes[:, ::2] = 200
    shrunk = decode(encoded(PIL.Image.fromarray(stripes)), 4)
    assert shrunk.shape == (4, 4, 3)
    assert np.abs(shrunk.astype(int) - 100).max() < 30


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1", "LA"])
def test_every_colour_mode_becomes_rgb(mode: str) -> None:
    kind = "TIFF" if mode == "CMYK" else "PNG"
    data = encoded(PIL.Image.new("RGB", (6, 5), (255, 255, 255)).convert(mode), kind)
    image = decode(data, 8)
    assert image.shape == (8, 8, 3)
    assert image.dtype == np.uint8
    assert image.min() == 255


def test_a_transparent_palette_raises_no_warning() -> None:
    image = PIL.Image.new("P", (4, 4))
    decode(encoded(image, transparency=b"\x00\x80"), 4)


def test_nonsense_and_truncated_files_are_corrupt() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    jpeg = encoded(PIL.Image.fromarray(noise), "JPEG")
    for data in (b"", b"not an image", jpeg[: len(jpeg) // 2]):
        with pytest.raises(CorruptImage):
            decode(data, 8)


def test_an_unreadable_file_is_the_machines_fault(tmp_path: Path) -> None:
    with open_reader(tmp_path) as read, pytest.raises(MachineError, match=r"gone\.png"):
        read("gone.png")
