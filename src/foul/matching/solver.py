"""The convex solver: minimise `F(w) = <b, w> + c sqrt(w' H w)` over a product of simplices.

`H` is the Gram matrix of the signed deltas, `b` their products with the anchor, `c` the radius of
the ball. On the affine hull of a face (support `A`, one indicator column of `E` per simplex) the
minimiser is known in closed form: with `M = E' H^-1 E` and `m = E' H^-1 b`,

    rho = b' H^-1 b - m' M^-1 m        squared norm of the part of g along the hull
    s   = 1' M^-1 1                    squared distance of the hull from the origin
    tau = sqrt((c^2 - rho) / s)        = c / |Dw|
    w   = H^-1 (E M^-1 (tau 1 + m) - b) / tau

so one Cholesky factorisation gives the exact minimiser of a face, and only the face has to be
found. Block pivoting (drop every negative weight, add the violated ones together) does that in
about five factorisations; where it stalls, one step of a monotone active set, which adds a single
client, moves on. Where `rho >= c^2`, F falls without end along the hull: there the majoriser
`<b, w> + (w' H w / t + t c^2) / 2` with `t = |Dw| / c` is minimised instead.

F has no gradient where Dw = 0, and H is singular when deltas are linearly dependent. Both are met
by a ridge of a few rounding errors, `H + delta I`: it makes the minimiser unique, and
`x = g + D y` with `y = c w / sqrt(|Dw|^2 + delta |w|^2)` lies in the ball, so `F(w) - Phi(x)`,
evaluated without the ridge, stays a valid gap everywhere.

The paper prints the problem only; its authors take 20 steps of softmax gradient descent on it,
without the products between retain and forget clients and without a gap.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# A certificate that stays this far inside the ball owes it to the ridge: Dw is 0 up to rounding.
_INSIDE = 0.99


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
        objective: F(w).
        primal: Phi(x), the sum over the simplices of the least `b + H y`.
        norm: |Dw|.
        smoothed: sqrt(|Dw|^2 + delta |w|^2), the norm with the ridge.
        gradient: `b + (H + delta I) y`, the gradient of F with its ridge.
        iterations: factorisations spent to get here.
    """

    weights: Vector
    objective: float
    primal: float
    norm: float
    smoothed: float
    gradient: Vector
    iterations: int

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


def solve(problem: Problem, tolerance: float = 1e-10, max_iterations: int = 2000) -> Point:
    """The minimiser of `problem`, or the best point found, with its gap.

    Args:
        tolerance: stop once the gap is at most this number, in units of the objective.
        max_iterations: stop after this many factorisations.
    """
    return _Solver(problem, tolerance, max_iterations).run()


def evaluate(
    problem: Problem,
    weights: Vector,
    ridge: float,
    groups: list[Indices],
    product: Callable[[Vector], Vector],
    iterations: int = 0,
) -> Point:
    """F, Phi and the gradient at `weights`; `product` computes `H w`, which is all it needs of H."""
    image = product(weights)
    squared = max(float(weights @ image), 0.0)
    norm = squared**0.5
    smoothed = (squared + ridge * float(weights @ weights)) ** 0.5
    scale = problem.radius / smoothed
    slopes = problem.linear + scale * image
    return Point(
        weights=weights,
        objective=float(problem.linear @ weights) + problem.radius * norm,
        primal=sum(float(slopes[group].min()) for group in groups),
        norm=norm,
        smoothed=smoothed,
        gradient=slopes + (scale * ridge) * weights,
        iterations=iterations,
    )


def least_ridge(diagonal: Vector) -> float:
    """The ridge below which a Cholesky factorisation drowns in rounding errors."""
    return 8 * _EPS * float(diagonal.sum())


def groups_of(blocks: Indices) -> list[Indices]:
    """The clients of each simplex."""
    return [np.flatnonzero(blocks == block) for block in range(int(blocks.max()) + 1)]


class _Hull(NamedTuple):
    """What the closed form needs of the affine hull of a face (see the head of this file).

    Attributes:
        nearest: `H^-1 E M^-1 1`, the weights of its point nearest to the origin.
        tilt: `H^-1 (E M^-1 m - b)`: `D tilt` takes from g its part along the hull.
        distance: s.
        along: rho.
    """

    nearest: Vector
    tilt: Vector
    distance: float
    along: float


class _Solver:
    """The state of one run: the problem, its ridge, the number of factorisations."""

    def __init__(self, problem: Problem, tolerance: float, max_iterations: int) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.groups = groups_of(problem.blocks)
        self.ridge = least_ridge(problem.quadratic.diagonal())
        self.iterations = 0
        size, blocks = len(problem.linear), len(self.groups)
        self.right = np.zeros((size, blocks + 1))
        self.right[np.arange(size), problem.blocks] = 1.0
        self.right[:, blocks] = problem.linear

    def run(self) -> Point:
        shares = 1.0 / self.right[:, :-1].sum(axis=0)
        point = self.evaluate(shares[self.problem.blocks])
        members = np.arange(len(self.problem.linear))
        while not self.finished(point):
            better = self.pivot(point, members) or self.advance(point)
            if better is None:
                break
            point = better
            members = self.enlarged(point)
        return point

    def finished(self, point: Point) -> bool:
        return point.gap <= self.tolerance or self.iterations >= self.max_iterations

    def evaluate(self, weights: Vector) -> Point:
        return evaluate(
            self.problem,
            weights,
            self.ridge,
            self.groups,
            self.problem.quadratic.__matmul__,
            self.iterations,
        )

    def merit(self, point: Point) -> float:
        """F with its ridge: the smooth, strictly convex function whose descent ends the search."""
        return point.objective + self.problem.radius * (point.smoothed - point.norm)

    def pivot(self, point: Point, members: Indices) -> Point | None:
        """Minimise over the face, dropping negative weights all at once, until none is left."""
        while True:
            weights = self.face_minimiser(members, point)
            positive = weights > 0.0
            if positive.all():
                break
            members = members[positive]
        better = self.evaluate(self.spread(members, weights))
        if better.reach < _INSIDE:
            better = self.certified_inside(better, members)
            return better if better.gap < point.gap else None
        return better if self.merit(better) < self.merit(point) else None

    def certified_inside(self, point: Point, members: Indices) -> Point:
        """`point`, where Dw = 0, with the certificate `x = g + D tilt`.

        There `y = c w / |Dw|` is 0 / 0 up to rounding; the tilt is the part of y that stays finite.
        It needs a larger ridge, because M is singular where the origin lies in the hull.
        """
        ridge = _EPS**0.5 * float(self.problem.quadratic.diagonal().max())
        tilt = self.spread(members, self.hull(members, ridge).tilt)
        image = self.problem.quadratic @ tilt
        length = max(float(tilt @ image), 0.0) ** 0.5
        slopes = self.problem.linear + min(1.0, self.problem.radius / max(length, _TINY)) * image
        primal = sum(float(slopes[group].min()) for group in self.groups)
        return replace(point, primal=primal, gradient=slopes) if primal > point.primal else point

    def advance(self, point: Point) -> Point | None:
        """One step of the monotone active set: add the most violated client, drop one by one."""
        start = self.merit(point)
        violation = self.violation(point)
        members = np.flatnonzero(point.weights > 0.0)
        members = np.union1d(members, violation.argmax(keepdims=True))
        while self.iterations < self.max_iterations:
            weights = point.weights[members]
            step = self.face_minimiser(members, point) - weights
            falling = step < 0.0
            limits = np.full(len(step), np.inf)
            limits[falling] = weights[falling] / -step[falling]
            limit = float(limits.min())
            length = min(limit, self.line_minimum(point, self.spread(members, step)))
            weights = np.maximum(weights + length * step, 0.0)
            if length == limit:
                weights[limits.argmin()] = 0.0
            point = self.evaluate(self.spread(members, weights))
            if length < limit:
                break
            members = members[weights > 0.0]
        return point if self.merit(point) < start else None

    def enlarged(self, point: Point) -> Indices:
        """The support and the worst violations, at most as many again: more would swamp it."""
        violation = self.violation(point)
        support = point.weights > 0.0
        violation[support] = 0.0
        room = max(16, int(support.sum()))
        worst = np.argsort(-violation, kind="stable")[:room]
        support[worst[violation[worst] > 0.0]] = True
        return np.flatnonzero(support)

    def violation(self, point: Point) -> Vector:
        """How far each slope lies below the mean slope of its simplex, which is the multiplier."""
        products = point.weights * point.gradient
        multipliers = np.array([products[group].sum() for group in self.groups])
        violation: Vector = multipliers[self.problem.blocks] - point.gradient
        return violation

    def spread(self, members: Indices, values: Vector) -> Vector:
        full = np.zeros(len(self.problem.linear))
        full[members] = values
        return full

    def line_minimum(self, point: Point, step: Vector) -> float:
        """The minimiser over alpha of `F(w + alpha step)`: `beta u + c sqrt(C u^2 + E)`, shifted."""
        slope = float(self.problem.linear @ step)
        image = self.problem.quadratic @ step + self.ridge * step
        curvature = float(step @ image)
        cross = float(point.weights @ image)
        room = self.problem.radius**2 * curvature - slope**2
        if curvature <= 0.0 or room <= 0.0:
            return np.inf if slope < 0.0 else 1.0
        rest = max(point.smoothed**2 - cross**2 / curvature, 0.0)
        return -cross / curvature - slope * float(np.sqrt(rest / (curvature * room)))

    def face_minimiser(self, members: Indices, point: Point) -> Vector:
        """The weights of `members` that minimise F, or its majoriser at `point`, on their hull."""
        hull = self.hull(members, self.ridge)
        room = self.problem.radius**2 - hull.along
        if room > 1e-12 * self.problem.radius**2 and hull.distance > 0.0:
            scale = (room / hull.distance) ** 0.5
        else:
            scale = self.problem.radius / point.smoothed
        return hull.nearest + hull.tilt / scale

    def hull(self, members: Indices, ridge: float) -> "_Hull":
        right = self.right[members]
        solved = self.solve_with_ridge(members, right, ridge)
        table = right.T @ solved
        targets = np.ones((len(self.groups), 2))
        targets[:, 1] = table[:-1, -1]
        ones, linear = np.linalg.solve(table[:-1, :-1], targets).T
        return _Hull(
            nearest=solved[:, :-1] @ ones,
            tilt=solved[:, :-1] @ linear - solved[:, -1],
            distance=float(ones.sum()),
            along=float(table[-1, -1] - targets[:, 1] @ linear),
        )

    def solve_with_ridge(self, members: Indices, right: Matrix, ridge: float) -> Matrix:
        """`(H + delta I)^-1 right` on `members`; delta grows until the matrix is definite."""
        whole = len(members) == len(self.problem.linear)
        while True:
            part = self.problem.quadratic
            part = part.copy() if whole else part[members[:, None], members]
            part.flat[:: len(members) + 1] += ridge
            self.iterations += 1
            # H is symmetric, so its transpose is H in the order LAPACK overwrites in place.
            _, solved, failed = dposv(part.T, right, overwrite_a=1)
            if not failed:
                return np.asarray(solved)
            ridge *= 16.0
            self.ridge = max(ridge, self.ridge)
