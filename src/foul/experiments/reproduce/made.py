"""Made images in the layout of a known data set: for smoke tests where the set is not at hand."""

from pathlib import Path

import numpy as np
import PIL.Image

from foul.data.known import KnownSet, known
from foul.experiments.reproduce.sources import Source
from foul.seeds import numpy_generator

SIDE = 16
PATTERN = 4
PER_CLASS = 10
FEW = 3
"""Images per class where there are dozens of classes."""


def made_source(name: str, root: Path) -> Source:
    """A folder ROOT/NAME/DOMAIN/CLASS/*.png of patterns; one that is there is used again.

    A class is a coarse pattern, a domain a pair of colours: the gap between domains is real, and a
    tiny network learns it.
    """
    entry = known(name)
    path = root / entry.name
    done = path / "complete.txt"
    if not done.is_file():
        for domain in entry.domains:
            _write_domain(entry, domain, path / domain)
        done.write_text("made images, for smoke tests only\n", encoding="utf-8")
    return Source(entry.name, path, tuple(entry.domains), made=True)


def _write_domain(entry: KnownSet, domain: str, folder: Path) -> None:
    colours = numpy_generator(0, "made/colours", client=domain).uniform(0, 1, (2, 3))
    count = PER_CLASS if len(entry.classes) <= 10 else FEW
    for label in entry.classes:
        shape = numpy_generator(0, "made/class", client=label).random((PATTERN, PATTERN)) < 0.5
        large = np.kron(shape, np.ones((SIDE // PATTERN, SIDE // PATTERN)))[..., None]
        noise = numpy_generator(0, f"made/{label}", client=domain)
        (folder / label).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            pixels = large * colours[0] + (1 - large) * colours[1]
            pixels = pixels + noise.normal(0, 0.08, (SIDE, SIDE, 3))
            image = PIL.Image.fromarray((pixels.clip(0, 1) * 255).astype(np.uint8))
            image.save(folder / label / f"{number}.png")
