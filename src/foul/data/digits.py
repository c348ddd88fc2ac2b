"""The embedded default: real digits drawn in four styles, which are four domains.

Each digit appears in one style only and is given to the training or the test part before it
is drawn. The set is the same for every seed of a run.

The styles are made so that each has something that no other prepares for (light strokes on
dark, hue instead of brightness, lines instead of strokes, a busy background): a network
trained without a style loses 15 points or more on it (``benchmarks/style_gap.py``).
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from foul.data.domains import Domain, DomainSet, Samples
from foul.data.known import DIGITS
from foul.data.mnist import embedded_digits
from foul.data.resize import resized
from foul.seeds import numpy_generator

SEED = 1998
PER_CLASS, TEST_PER_CLASS = 125, 25
# How bright red, green and blue look.
LUMA = np.array([0.299, 0.587, 0.114])

Grey = NDArray[np.float32]
"""Ink ``[N, 28, 28]`` between 0 and 1."""
Colour = NDArray[np.float32]
"""Pixels ``[N, 28, 28, 3]`` between 0 and 1."""
Style = Callable[[Grey, np.random.Generator], Colour]


def plain(ink: Grey, rng: np.random.Generator) -> Colour:
    """White on black, as MNIST is."""
    return np.repeat(ink[..., None], 3, axis=-1)


def inverted(ink: Grey, rng: np.random.Generator) -> Colour:
    """A dark colour on a light one of another hue, both drawn anew for each digit.

    Most of their difference is hue, so that a network that looks at brightness is lost.
    """
    hue = rng.uniform(-1, 1, (len(ink), 3))
    hue -= (hue @ LUMA)[:, None] * LUMA / (LUMA @ LUMA)
    hue /= np.abs(hue).max(axis=1, keepdims=True)
    middle = rng.uniform(0.45, 0.55, (len(ink), 1))
    away = 0.36 * hue - 0.13
    return _blend(ink, (middle + away)[:, None, None], (middle - away)[:, None, None])


def contours(ink: Grey, rng: np.random.Generator) -> Colour:
    """Only a bright line around the strokes, on dark."""
    front = rng.uniform(0.7, 1.0, (len(ink), 1, 1, 3))
    back = rng.uniform(0.0, 0.3, (len(ink), 1, 1, 3))
    return _blend(_outline(ink), front, back)


def textured(ink: Grey, rng: np.random.Generator) -> Colour:
    """A light background of coloured blotches that the strokes darken."""
    blotches = torch.from_numpy(rng.uniform(0, 1, (len(ink), 3, 9, 9)).astype(np.float32))
    smooth = functional.interpolate(blotches, size=ink.shape[1:], mode="bicubic")
    background = 0.35 + 0.65 * smooth.permute(0, 2, 3, 1).numpy().clip(0, 1)
    darker: Colour = background * (1 - 0.65 * ink[..., None])
    return darker


STYLES: dict[str, Style] = {
    "plain": plain,
    "inverted": inverted,
    "contours": contours,
    "textured": textured,
}


def digits(image_size: int) -> DomainSet:
    """The four domains at this image size (28 is the original one)."""
    domains = []
    for name, (images, labels) in _drawn().items():
        samples = Samples.of(resized(images, image_size), labels)
        place = torch.arange(len(labels)) % PER_CLASS
        train = samples.subset(torch.nonzero(place >= TEST_PER_CLASS).flatten())
        test = samples.subset(torch.nonzero(place < TEST_PER_CLASS).flatten())
        domains.append(Domain(name, train, test))
    return DomainSet("digits", DIGITS, image_size, tuple(domains))


@cache
def _drawn() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Images and labels of each style, class by class, the test part of a class first."""
    grey, labels = embedded_digits()
    shuffled = numpy_generator(SEED, "digits/deal").permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")].reshape(len(DIGITS), -1)
    result = {}
    for number, (name, style) in enumerate(STYLES.items()):
        rows = by_class[:, number * PER_CLASS : (number + 1) * PER_CLASS].ravel()
        ink: Grey = grey[rows].astype(np.float32) / np.float32(255)
        pixels = style(ink, numpy_generator(SEED, "digits/style", client=name))
        images = (pixels.clip(0, 1) * 255).round().astype(np.uint8)
        result[name] = (torch.from_numpy(images), torch.from_numpy(labels[rows]))
    return result


def _blend(ink: Grey, front: NDArray[np.float64], back: NDArray[np.float64]) -> Colour:
    cover = ink[..., None]
    return (cover * front + (1 - cover) * back).astype(np.float32)


def _outline(ink: Grey) -> Grey:
    """A line one pixel wide, one pixel away from the ink."""
    grey = torch.from_numpy(ink)[:, None]
    fat = functional.max_pool2d(grey, 3, stride=1, padding=1)
    across = functional.max_pool2d(fat, (1, 3), stride=1, padding=(0, 1))
    down = functional.max_pool2d(fat, (3, 1), stride=1, padding=(1, 0))
    return (torch.maximum(across, down) - fat)[:, 0].numpy()
