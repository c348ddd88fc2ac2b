"""From the products of the deltas to one weight per client: the matching itself.

With anchor `g = sum a_u d_u`, signs s and ball radius `c = kappa |g|`, the update is

    x = g + c Dw / |Dw|,    w = argmin F,    F(w) = <g, Dw> + c |Dw|,    Dw = sum_u s_u w_u d_u

which maximises `Phi(x) = min_retain <d_u, x> + min_forget <s_v d_v, x>` over `|x - g| <= c`. This
is what the proof of the paper's theorem derives; `MatchingOptions` says which options turn it into
the theorem as printed.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foul.matching.convex import INSIDE, Indices, Matrix, Point, Problem, Vector
from foul.matching.problem import Flag, Matching, MatchingOptions
from foul.matching.solver import solve

_EPS = float(np.finfo(np.float64).eps)


class Products(Protocol):
    """What the matching asks of the deltas: their norms, products with a sum, and a minimiser."""

    squared_norms: Vector

    def with_sum(self, weights: Vector) -> Vector:
        """`<d_u, sum_v weights[v] d_v>` for every u."""

    def minimise(
        self, factors: Vector, linear: Vector, radius: float, blocks: Indices, tolerance: float
    ) -> Point:
        """The minimiser of F for the deltas `factors[u] d_u`."""


class GramProducts:
    """Products read from the Gram matrix."""

    def __init__(self, gram: Matrix) -> None:
        self.gram = gram
        self.squared_norms: Vector = gram.diagonal()

    def with_sum(self, weights: Vector) -> Vector:
        products: Vector = self.gram @ weights
        return products

    def minimise(
        self, factors: Vector, linear: Vector, radius: float, blocks: Indices, tolerance: float
    ) -> Point:
        quadratic = self.gram * factors
        quadratic *= factors[:, None]
        return solve(Problem(quadratic, linear, radius, blocks), tolerance)


def match(
    gram: ArrayLike,
    forget: ArrayLike,
    options: MatchingOptions | None = None,
    anchor_weights: ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> Matching:
    """The update of one round, from the Gram matrix of the deltas.

    Args:
        gram: U x U products of the deltas, of clients with finite deltas only.
        forget: for each client, whether it is to be forgotten. None of them: the problem is CAGrad.
        options: the choices; `MatchingOptions()` by default.
        anchor_weights: sample counts or other shares of the clients in g; uniform by default. Those
            of forget clients do not count unless `anchor="all"`.
        tolerance: relative gap to reach.

    Raises:
        ValueError: naming what is wrong with an argument.
    """
    values = np.asarray(gram, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) == 0:
        raise ValueError(f"gram has shape {values.shape}: give one row and column per client.")
    broken = np.flatnonzero(~np.isfinite(values.diagonal()))
    if len(broken) or not np.isfinite(values).all():
        raise ValueError(
            f"gram is not finite (clients {broken.tolist()}): "
            "leave out the clients that gram_matrix reports as not finite."
        )
    largest = float(values.diagonal().max())
    # Scaled to the largest delta, so that no square of a tiny or huge number leaves float64.
    scaled = GramProducts(values / largest if largest > 0.0 else values)
    return match_products(scaled, largest**0.5, forget, options, anchor_weights, tolerance)


def match_products(
    products: Products,
    unit: float,
    forget: ArrayLike,
    options: MatchingOptions | None = None,
    anchor_weights: ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> Matching:
    """The update from any source of products of `d_u / unit`, whose largest norm is 1 (or 0)."""
    options = options or MatchingOptions()
    norms = np.sqrt(np.maximum(products.squared_norms, 0.0))
    mask = _forget_mask(forget, len(norms))
    anchor = _anchor(mask, options, anchor_weights)
    mean_norm = float(norms[~mask].mean())
    reference = _reference(norms, mask, options)
    stretch = np.ones_like(norms)
    if options.normalise != "none" and mean_norm > 0.0:
        short = norms < mean_norm if options.normalise == "retain_least" else True
        brought = ~mask | short
        np.divide(mean_norm, norms, out=stretch, where=brought & (norms > 0.0))
        norms = stretch * norms

    pulls = stretch * products.with_sum(anchor * stretch)
    length = max(float(anchor @ pulls), 0.0) ** 0.5
    # The Gram matrix holds squares: below the root of a rounding error g cannot be told from 0.
    lost = length <= 8 * _EPS**0.5 * float(anchor @ norms)
    reference = length if reference is None else reference
    signs = np.where(mask, options.sign, 1.0)
    blocks = mask.astype(np.intp) if options.simplex == "split" else np.zeros(len(mask), np.intp)
    if (lost and options.radius_of == "anchor") or reference == 0.0:
        flag: Flag = "no_anchor"
        point = _vertex(np.zeros_like(norms), blocks)
        weights, largest, scale = np.zeros_like(norms), 1.0, 1.0
    else:
        largest = float((np.abs(signs) * norms).max())
        scale = max(length, reference)
        linear = signs * pulls / (scale * largest)
        factor = options.kappa if options.radius == "kappa" else options.kappa**0.5
        if factor == 0.0:
            point = _vertex(linear, blocks)
        else:
            radius = factor * reference / scale
            factors = signs * stretch / largest
            point = products.minimise(factors, linear, radius, blocks, tolerance)
        flag = "ok" if factor == 0.0 or point.reach >= INSIDE else "no_direction"
        weights = anchor
        if flag == "ok" and factor > 0.0:
            step = options.kappa * reference / (point.norm * largest)
            weights = anchor + step * signs * point.weights
    weights = weights * stretch
    if options.rescale:
        weights = weights / (1.0 + options.kappa**2)
    return _matching(products, unit, options, point, weights, flag, length, scale * largest)


def _matching(
    products: Products,
    unit: float,
    options: MatchingOptions,
    point: Point,
    weights: Vector,
    flag: Flag,
    length: float,
    scale: float,
) -> Matching:
    """The result in the units of the deltas as they came."""
    norms = np.sqrt(np.maximum(products.squared_norms, 0.0))
    along = products.with_sum(weights)
    reached = max(float(weights @ along), 0.0) ** 0.5
    cosines = np.zeros_like(norms)
    np.divide(along, reached * norms, out=cosines, where=reached * norms > 0.0)
    return Matching(
        weights=weights,
        simplex_weights=point.weights,
        objective=point.objective * scale * unit**2,
        primal=point.primal * scale * unit**2 if options.radius == "kappa" else None,
        gap=point.gap * scale * unit**2,
        relative_gap=point.gap,
        iterations=point.iterations,
        flag=flag,
        cosines=cosines,
        anchor_norm=length * unit,
        update_norm=reached * unit,
    )


def _vertex(linear: Vector, blocks: Indices) -> Point:
    """The minimiser where F is linear: all weight of a simplex on the client of least slope."""
    weights = np.zeros_like(linear)
    for block in range(int(blocks.max()) + 1):
        group = np.flatnonzero(blocks == block)
        weights[group[linear[group].argmin()]] = 1.0
    value = float(linear @ weights)
    zeros = np.zeros_like(linear)
    return Point(weights, zeros, value, value, 0.0, 1.0, linear)


def _reference(norms: Vector, mask: NDArray[np.bool_], options: MatchingOptions) -> float | None:
    """The mean norm that kappa is a share of, of the deltas as they came; None: the anchor's."""
    if options.radius_of == "anchor":
        return None
    retain = float(norms[~mask].mean())
    if options.radius_of == "mean_norm" or not mask.any():
        return retain
    return max(retain, float(norms[mask].mean()))


def _forget_mask(forget: ArrayLike, clients: int) -> NDArray[np.bool_]:
    mask = np.asarray(forget)
    if mask.dtype != np.bool_ or mask.shape != (clients,):
        raise ValueError(
            f"forget has dtype {mask.dtype} and shape {mask.shape}: "
            f"give one bool for each of the {clients} clients."
        )
    if mask.all():
        raise ValueError("forget names every client: at least one must be retained.")
    return mask


def _anchor(
    mask: NDArray[np.bool_], options: MatchingOptions, anchor_weights: ArrayLike | None
) -> Vector:
    """The shares a_u of the clients in g."""
    given = np.ones(len(mask)) if anchor_weights is None else np.asarray(anchor_weights, np.float64)
    if given.shape != mask.shape or not np.isfinite(given).all() or (given < 0.0).any():
        raise ValueError(
            f"anchor_weights is {given.tolist()}: give one finite number, 0 or more, for each of "
            f"the {len(mask)} clients."
        )
    shares = np.where(mask, 0.0, given) if options.anchor == "retain" else given
    total = float(shares.sum())
    if total == 0.0:
        raise ValueError("anchor_weights of the clients in the anchor are all 0: give one weight.")
    anchor: Vector = shares / total
    return anchor
