"""Aligned logits for tests: the true class in column 0, the others behind it, downwards."""

import numpy as np
from numpy.typing import NDArray


def aligned(
    rng: np.random.Generator, samples: int, classes: int = 4, lead: float = 0.0, scale: float = 1.0
) -> NDArray[np.float64]:
    """Normal logits; the true class's is ahead by `lead`."""
    logits = scale * rng.normal(size=(samples, classes))
    logits[:, 0] += lead
    logits[:, 1:] = -np.sort(-logits[:, 1:], axis=1)
    return logits
