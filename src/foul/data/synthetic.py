"""Patterns in four moods: a data set of milliseconds, for tests."""

import numpy as np
import torch
from numpy.typing import NDArray

from foul.data.domains import Domain, DomainSet, Samples
from foul.seeds import numpy_generator

CLASSES = ("bars", "checks", "disc")
TRAIN, TEST = 60, 24
# Background and foreground colour of each domain, and how much noise lies over them.
MOODS = {
    "north": ((0.05, 0.05, 0.15), (0.85, 0.90, 1.00), 0.05),
    "east": ((0.95, 0.85, 0.60), (0.30, 0.10, 0.05), 0.05),
    "south": ((0.10, 0.45, 0.15), (0.75, 0.60, 0.10), 0.15),
    "west": ((0.55, 0.30, 0.55), (0.25, 0.65, 0.70), 0.10),
}


def synthetic(image_size: int, seed: int) -> DomainSet:
    """Build the set: the class is the shape, the domain is colour, contrast and noise."""
    domains = []
    for name in MOODS:
        train, test = (
            _samples(name, part, count, image_size, seed)
            for part, count in (("train", TRAIN), ("test", TEST))
        )
        domains.append(Domain(name, train, test))
    return DomainSet("synthetic", CLASSES, image_size, tuple(domains))


def _samples(domain: str, part: str, count: int, size: int, seed: int) -> Samples:
    rng = numpy_generator(seed, f"data/synthetic/{part}", client=domain)
    labels = np.arange(count) % len(CLASSES)
    shapes = np.stack([_shape(CLASSES[label], size, rng) for label in labels])[..., None]
    back, front, noise = MOODS[domain]
    pixels = shapes * np.array(front) + (1 - shapes) * np.array(back)
    pixels += rng.normal(0, noise, pixels.shape)
    images = (pixels.clip(0, 1) * 255).round().astype(np.uint8)
    return Samples.of(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))


def _shape(name: str, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The pattern of a class at a random place: true in the foreground."""
    period = max(2, size // 4)
    down, right = rng.integers(0, 2 * period, 2)
    y, x = np.mgrid[:size, :size]
    if name == "bars":
        return _odd((y + down) // period)
    if name == "checks":
        return _odd((y + down) // period + (x + right) // period)
    centre = size / 2 - 0.5 + rng.uniform(-size / 8, size / 8, 2)
    distance = np.hypot(y - centre[0], x - centre[1])
    inside: NDArray[np.bool_] = distance < size * rng.uniform(0.25, 0.4)
    return inside


def _odd(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (numbers % 2).astype(np.bool_)
