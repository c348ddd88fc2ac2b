"""Small image folders, and the real data sets where they are at hand."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foul.seeds import numpy_generator

MakeFolder = Callable[..., Path]


def write_image(path: Path, seed: int, size: int = 12) -> None:
    """A picture of noise that depends on the seed only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = numpy_generator(seed, "test-image").integers(0, 256, (size, size, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(path)


@pytest.fixture
def make_folder(tmp_path: Path) -> MakeFolder:
    """Makes ROOT/DOMAIN/CLASS/NUMBER.png with this many images of each domain and class."""

    def make(
        counts: Mapping[str, Mapping[str, int]] | None = None, root: str = "set", size: int = 12
    ) -> Path:
        default = {domain: {"cat": 5, "dog": 5} for domain in ("ink", "oil")}
        seed = 0
        for domain, classes in (counts or default).items():
            for label, count in classes.items():
                (tmp_path / root / domain / label).mkdir(parents=True, exist_ok=True)
                for number in range(count):
                    seed += 1
                    write_image(tmp_path / root / domain / label / f"{number}.png", seed, size)
        return tmp_path / root

    return make


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data sets: FOUL_SHARED, or shared/data beside the repository."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("FOUL_SHARED") or beside)
    if not (folder / "PACS64.zip").exists():
        pytest.skip(f"real data sets are not at {folder} (set FOUL_SHARED)")
    return folder
