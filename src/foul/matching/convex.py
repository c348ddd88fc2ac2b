"""The convex problem of the matching, its points, and how far from optimal they can be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

INSIDE = 0.9999
"""A certificate this far inside the ball owes it to the ridge: Dw is 0 up to rounding."""


@dataclass(frozen=True)
class Problem:
    """`min <linear, w> + radius sqrt(w' quadratic w)`, the weights of each block on one simplex.

    Args:
        quadratic: symmetric positive semidefinite H.
        linear: b.
        radius: c > 0.
        blocks: number of each client's simplex, from 0; every number up to the largest occurs.
    """

    quadratic: Matrix
    linear: Vector
    radius: float
    blocks: Indices


@dataclass(frozen=True)
class Point:
    """A feasible `w` and the point `x = g + D y` of the ball that bounds its distance from optimal.

    Attributes:
        weights: w.
        certificate: y.
        objective: F(w).
        primal: Phi(x), the sum over the simplices of the least `b + H y`.
        norm: |Dw|.
        smoothed: `sqrt(w' (H + R) w)`, the norm with the ridge.
        gradient: `b + (H + R) y`, the gradient of F with its ridge.
        tilt: |x - g| where Dw = 0 up to rounding; 0 elsewhere.
        iterations: factorisations spent to get here.
    """

    weights: Vector
    certificate: Vector
    objective: float
    primal: float
    norm: float
    smoothed: float
    gradient: Vector
    tilt: float = 0.0
    iterations: int = 0

    @property
    def gap(self) -> float:
        """`F(w) - Phi(x)`, at least the distance of F(w) from its minimum."""
        return max(self.objective - self.primal, 0.0)

    @property
    def reach(self) -> float:
        """`|x - g| / c`: 1 but for rounding, or less where F is least at Dw = 0.

        Where Dw is not 0 the ridge does not count and x lies on the sphere. Where it is 0, the
        ridge alone decides, and a point inside the ball certifies the minimum.
        """
        return self.norm / self.smoothed


def groups_of(blocks: Indices) -> list[Indices]:
    """The clients of each simplex."""
    return [np.flatnonzero(blocks == block) for block in range(int(blocks.max()) + 1)]


def lowest(slopes: Vector, groups: list[Indices]) -> float:
    """Phi: the least slope of each simplex, summed."""
    return sum(float(slopes[group].min()) for group in groups)
