"""Euclidean projection onto a simplex, and onto a product of simplices. Exact, in float64."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]


def project_simplex(values: Vector) -> Vector:
    """The point of `{w >= 0, sum w = 1}` nearest to `values`.

    It is `max(values - theta, 0)`. With the values sorted downwards, theta is the largest of
    `(v_1 + ... + v_k - 1) / k`: that function of k rises while `v_k` exceeds it and falls after.
    """
    downwards = -np.sort(-values)
    thetas = (np.cumsum(downwards) - 1.0) / np.arange(1, len(values) + 1)
    projected: Vector = np.maximum(values - thetas.max(), 0.0)
    return projected


def project_simplices(values: Vector, groups: Sequence[Indices]) -> Vector:
    """`values` with each group of entries projected onto a simplex of its own."""
    projected = np.zeros_like(values)
    for group in groups:
        projected[group] = project_simplex(values[group])
    return projected
