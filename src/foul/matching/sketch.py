"""Thousands of clients: match random projections of the deltas, all made with one shared seed.

A U x U Gram matrix of 10,000 clients takes 800 MB and reading all pairs of deltas takes hours. A
sketch of m numbers per delta keeps all products up to `|d_u| |d_v| / sqrt(m)`, can be made by each
client from the shared seed, and gives the solver a factor instead of a matrix.

The projection is a count sketch: each coordinate is added, with a random sign, to one of m buckets.
Its buckets run through a block of m coordinates in order, from a random start, so a block is two
vector additions and no scatter. Coordinates of one block never meet; those of different blocks meet
with probability 1 / m, as in a count sketch with independent buckets, so products stay unbiased and
their variance is no larger.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from foul.matching.convex import Indices, Matrix, Point, Vector
from foul.matching.factored import solve_factored
from foul.matching.gram import Deltas, blocks
from foul.matching.match import match, match_products
from foul.matching.problem import Matching, MatchingOptions


def sketch(deltas: Deltas, dimension: int, seed: int) -> Tensor:
    """One row of `dimension` numbers per delta; equal seeds make comparable sketches.

    Args:
        deltas: as for `gram_matrix`; a list of one delta for a client that sketches its own.
        dimension: m. Products err by about `|d_u| |d_v| / sqrt(m)`.
        seed: chooses signs and buckets, the same for all clients of a round.
    """
    if dimension < 1:
        raise ValueError(f"dimension is {dimension}: use 1 or more.")
    generator = torch.Generator().manual_seed(seed)
    total = torch.zeros(0)
    for number, part in enumerate(blocks(deltas, dimension)):
        if number == 0:
            total = torch.zeros(len(part), dimension, dtype=part.dtype, device=part.device)
        start = int(torch.randint(dimension, (), generator=generator))
        signs = torch.randint(2, (part.shape[1],), generator=generator, dtype=torch.int8)
        factors = signs.to(part.device, part.dtype) * 2 - 1
        here = min(part.shape[1], dimension - start)
        total[:, start : start + here].addcmul_(part[:, :here], factors[:here])
        total[:, : part.shape[1] - here].addcmul_(part[:, here:], factors[here:])
    return total


def match_sketches(
    sketches: Tensor | NDArray[np.floating],
    forget: ArrayLike,
    options: MatchingOptions | None = None,
    anchor_weights: ArrayLike | None = None,
    tolerance: float = 1e-8,
) -> Matching:
    """`match`, with the products of the sketches in place of those of the deltas.

    The gap is that of the sketched problem: what the sketch itself loses is not in it. Where there
    are more clients than sketch dimensions no matrix of all pairs is built.
    """
    rows = np.asarray(sketches, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0 or not np.isfinite(rows).all():
        raise ValueError("sketches must be a finite matrix with one row per client.")
    if len(rows) <= rows.shape[1]:
        return match(rows @ rows.T, forget, options, anchor_weights, tolerance)
    unit = float(np.einsum("um,um->u", rows, rows).max()) ** 0.5
    products = _FactorProducts(rows / unit if unit > 0.0 else rows)
    return match_products(products, unit, forget, options, anchor_weights, tolerance)


def sharpen(
    sketches: Tensor | NDArray[np.floating], coefficients: ArrayLike, products: ArrayLike
) -> Matrix:
    """Sketches whose products are exact along `h = sum_u coefficients[u] d_u`.

    Most of what a sketch loses, it loses in the products with the anchor: among thousands of
    clients the least one is one whose noise is least. Those products are cheap to know exactly: the
    server sums the anchor and each client, or one more pass, multiplies it with its delta. Only
    what is left of the deltas beside h is then taken from the sketches.

    Args:
        coefficients: the anchor's weights, for h = g.
        products: `<d_u, h>`, exactly.
    """
    rows = np.asarray(sketches, dtype=np.float64)
    shares, along = np.asarray(coefficients, np.float64), np.asarray(products, np.float64)
    squared = float(shares @ along)
    if squared <= 0.0:
        return rows
    beside = rows - np.outer(along / squared, shares @ rows)
    return np.column_stack([along / squared**0.5, beside])


class _FactorProducts:
    """Products of the rows of a factor."""

    def __init__(self, factor: Matrix) -> None:
        self.factor = factor
        self.squared_norms: Vector = np.einsum("um,um->u", factor, factor)

    def with_sum(self, weights: Vector) -> Vector:
        products: Vector = self.factor @ (self.factor.T @ weights)
        return products

    def minimise(
        self, factors: Vector, linear: Vector, radius: float, blocks: Indices, tolerance: float
    ) -> Point:
        scaled = self.factor * factors[:, None]
        return solve_factored(scaled, linear, radius, blocks, tolerance)
