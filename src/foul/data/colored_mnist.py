"""Colored MNIST: the colour tells the label better than the shape does, until it does not.

Three environments as in DomainBed. The label is 1 for the digits 0 to 4, else 0, and is flipped
with probability 0.25 (``data.label_noise``). The colour is that noisy label, flipped with the
environment's probability: 0.1, 0.2 and 0.9, so it agrees with the label in 90, 80 and 10 per
cent of the images. A digit of colour 0 is red, of colour 1 green; blue is always zero.
"""

import numpy as np
import torch

from foul.config.schema import DataConfig
from foul.data.domains import Domain, DomainSet, Samples
from foul.data.mnist import embedded_digits, idx_digits
from foul.data.resize import resized
from foul.data.split import Rows, stratified_sample
from foul.seeds import numpy_generator

ENVIRONMENTS = {"+90%": 0.1, "+80%": 0.2, "-90%": 0.9}
CLASSES = ("0", "1")
TEST_FRACTION = 0.2


def colored_mnist(config: DataConfig, seed: int) -> DomainSet:
    """Build the set from the embedded digits, or from the MNIST files at ``config.path``.

    Args:
        config: path, image size and label noise.
        seed: for everything drawn: who belongs to which environment and part, noise, colours.

    Raises:
        UserError: the path holds no MNIST files.
    """
    grey, digits = embedded_digits() if config.path is None else idx_digits(config.path)
    order = numpy_generator(seed, "colored-mnist/deal").permutation(len(digits))
    domains = []
    for number, (name, flips) in enumerate(ENVIRONMENTS.items()):
        rows = order[number :: len(ENVIRONMENTS)]
        draw = numpy_generator(seed, "colored-mnist/split", client=name)
        test = stratified_sample(digits[rows], round(len(rows) * TEST_FRACTION), draw)
        labels, colours = _noisy(digits[rows], config.label_noise, flips, name, seed)
        samples = Samples.of(
            resized(_painted(grey[rows], colours), config.image_size), torch.from_numpy(labels)
        )
        train = np.setdiff1d(np.arange(len(rows)), test)
        domains.append(
            Domain(
                name,
                samples.subset(torch.from_numpy(train)),
                samples.subset(torch.from_numpy(test)),
            )
        )
    return DomainSet("colored-mnist", CLASSES, config.image_size, tuple(domains))


def _noisy(
    digits: Rows, label_noise: float, colour_flips: float, environment: str, seed: int
) -> tuple[Rows, Rows]:
    """The label of each digit, and its colour."""
    rng = numpy_generator(seed, "colored-mnist/noise", client=environment)
    labels = (digits < 5) ^ (rng.random(len(digits)) < label_noise)
    colours = labels ^ (rng.random(len(digits)) < colour_flips)
    return labels.astype(np.int64), colours.astype(np.int64)


def _painted(grey: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], colours: Rows) -> torch.Tensor:
    images = torch.zeros(*grey.shape, 3, dtype=torch.uint8)
    images[torch.arange(len(grey)), :, :, torch.from_numpy(colours)] = torch.from_numpy(grey)
    return images
