"""The convex solver: minimise `F(w) = <b, w> + c sqrt(w' H w)` over a product of simplices.

`H` is the Gram matrix of the signed deltas, `b` their products with the anchor, `c` the radius of
the ball. On the affine hull of a face the minimiser is known in closed form. Write its points as
`w_0 + Z q`, with `K = Z' H Z`, and

    nearest = w_0 - Z K^-1 Z' H w_0    its point nearest to the origin
    tilt    = -Z K^-1 Z' b             D tilt takes from g its part along the hull
    s       = |D nearest|^2
    rho     = |D tilt|^2
    tau     = sqrt((c^2 - rho) / s)    = c / |Dw|
    w       = nearest + tilt / tau

so one Cholesky factorisation gives the exact minimiser of a face, and only the face has to be
found. Block pivoting (drop every negative weight, add the violated ones together) does that in
about five factorisations; where it stalls, one step of a monotone active set, which adds a single
client, moves on. Where `rho >= c^2`, F falls without end along the hull: there the majoriser
`<b, w> + (w' H w / t + t c^2) / 2` with `t = |Dw| / c` is minimised instead.

F has no gradient where Dw = 0, and H is singular when deltas are linearly dependent. Both are met
by a ridge of a few rounding errors, `H + R` with R diagonal: it makes the minimiser unique, and
`x = g + D y` with `y = c w / sqrt(w' (H + R) w)` lies in the ball, so `F(w) - Phi(x)`, evaluated
without the ridge, stays a valid gap everywhere.

The paper prints the problem only; its authors take 20 steps of softmax gradient descent on it,
without the products between retain and forget clients and without a gap.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from threadpoolctl import ThreadpoolController

from foul.matching.conic import solve_conic
from foul.matching.simplex import project_simplices

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# A certificate that stays this far inside the ball owes it to the ridge: Dw is 0 up to rounding.
INSIDE = 0.9999
# A gap above this, in a problem scaled to 1, says that the active set has stalled.
_STALLED = 1e-7


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


def solve(problem: Problem, tolerance: float = 1e-10, max_iterations: int = 2000) -> Point:
    """The minimiser of `problem`, or the best point found, with its gap.

    Args:
        tolerance: stop once the gap is at most this number, in units of the objective.
        max_iterations: stop after this many factorisations.
    """
    # One thread: measured, a second one gains little on matrices of this size, and on a busy
    # machine OpenBLAS threads wait for each other a hundred times longer than they work.
    with _blas().limit(limits=1, user_api="blas"):
        return _Solver(problem, tolerance, max_iterations).run()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def groups_of(blocks: Indices) -> list[Indices]:
    """The clients of each simplex."""
    return [np.flatnonzero(blocks == block) for block in range(int(blocks.max()) + 1)]


def lowest(slopes: Vector, groups: list[Indices]) -> float:
    """Phi: the least slope of each simplex, summed."""
    return sum(float(slopes[group].min()) for group in groups)


class _Hull(NamedTuple):
    """The closed form of a face: see the head of this file."""

    nearest: Vector
    tilt: Vector
    distance: float  # s
    along: float  # rho


class _Solver:
    """The state of one run: the problem, its ridge, the number of factorisations."""

    def __init__(self, problem: Problem, tolerance: float, max_iterations: int) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.groups = groups_of(problem.blocks)
        # Below this, a Cholesky factorisation of a singular matrix drowns in rounding errors. Each
        # client has its own, so that a large delta does not drown the small ones.
        diagonal = problem.quadratic.diagonal()
        self.norms: Vector = np.sqrt(diagonal)
        self.ridge: Vector = 8 * _EPS * len(diagonal) * np.maximum(diagonal, 1e-8 * diagonal.max())
        self.iterations = 0
        self.numbers = range(len(self.groups))

    def run(self) -> Point:
        shares = 1.0 / np.bincount(self.problem.blocks)
        members = np.arange(len(self.problem.linear))
        point = self.descend(self.assess(members, shares[self.problem.blocks]), members)
        if point.gap > max(_STALLED, self.tolerance):
            point = self.rescued(point)
        return replace(point, iterations=self.iterations)

    def descend(self, point: Point, members: Indices) -> Point:
        best = point
        while not self.finished(best):
            better = self.pivot(point, members) or self.advance(point)
            if better is None:
                break
            point = better
            best = min(best, point, key=lambda candidate: candidate.gap)
            members = self.enlarged(point)
        return best

    def rescued(self, point: Point) -> Point:
        """`point` with the help of an interior point solver, which ties do not trouble."""
        problem = self.problem
        weights, certificate = solve_conic(
            problem.quadratic, problem.linear, problem.radius, problem.blocks
        )
        start = self.assess(np.arange(len(weights)), weights)
        if start.objective < point.objective - _STALLED:
            point = min(
                self.descend(start, np.flatnonzero(weights > _STALLED)),
                point,
                key=lambda candidate: candidate.gap,
            )
        image = problem.quadratic @ certificate
        return self.certified(point, certificate, image)

    def finished(self, point: Point) -> bool:
        return point.gap <= self.tolerance or self.iterations >= self.max_iterations

    def evaluate(self, weights: Vector) -> Point:
        problem = self.problem
        image = problem.quadratic @ weights
        squared = max(float(weights @ image), 0.0)
        norm = squared**0.5
        smoothed = (squared + float(self.ridge @ weights**2)) ** 0.5
        certificate = (problem.radius / smoothed) * weights
        slopes = problem.linear + (problem.radius / smoothed) * image
        return Point(
            weights=weights,
            certificate=certificate,
            objective=float(problem.linear @ weights) + problem.radius * norm,
            primal=lowest(slopes, self.groups),
            norm=norm,
            smoothed=smoothed,
            gradient=slopes + self.ridge * certificate,
        )

    def improves(self, point: Point, other: Point) -> bool:
        """Whether F with its ridge, which is smooth and strictly convex, is lower by more than
        rounding: |Dw|^2 is known to a few units in the last place of its terms, no better.

        Where Dw = 0 in both, that decides nothing, but x moves away from g with each client that
        its hull takes in, and the gap may halve only so often.
        """
        if point.tilt and other.tilt:
            return point.tilt > (1.0 + 1e-9) * other.tilt or point.gap < other.gap / 2
        radius = self.problem.radius
        lower = point.objective + radius * (point.smoothed - point.norm)
        upper = other.objective + radius * (other.smoothed - other.norm)
        rounding = 4 * _EPS * float(other.weights @ self.norms) ** 2
        return lower < upper - radius * rounding / other.smoothed

    def pivot(self, point: Point, members: Indices) -> Point | None:
        """Minimise over the face, dropping negative weights all at once, until none is left."""
        # On a face that stays the same the majoriser would creep; a larger t strides.
        stride = 8.0 if len(members) == np.count_nonzero(point.weights) else 1.0
        while True:
            weights, _ = self.face_minimiser(members, stride * point.smoothed)
            positive = weights > 0.0
            if positive.all():
                break
            members = members[positive]
            if not self.covers(members):
                return None
        better = self.assess(members, weights)
        return better if self.improves(better, point) else None

    def assess(self, members: Indices, weights: Vector) -> Point:
        """`weights`, without rounding errors in signs and sums, and with a certificate that fits.

        A gap holds for feasible weights only.
        """
        feasible = project_simplices(weights, groups_of(self.problem.blocks[members]))
        point = self.evaluate(self.spread(members, feasible))
        return point if point.reach >= INSIDE else self.certified_inside(point, members)

    def certified_inside(self, point: Point, members: Indices) -> Point:
        """`point`, where Dw = 0, with the certificate `x = g + D tilt`.

        There `y = c w / |Dw|` is 0 / 0 up to rounding; the tilt is the part of y that stays finite.
        """
        tilt = self.spread(members, self.hull(members).tilt)
        image = self.problem.quadratic @ tilt
        length = max(float(tilt @ image), 0.0) ** 0.5
        tilted = replace(point, tilt=min(max(length, _TINY), self.problem.radius))
        return self.certified(tilted, tilt, image)

    def certified(self, point: Point, certificate: Vector, image: Vector) -> Point:
        """`point` with `x = g + D certificate`, drawn into the ball, if that proves more."""
        length = max(float(certificate @ image), 0.0) ** 0.5
        shrink = min(1.0, self.problem.radius / max(length, _TINY))
        slopes = self.problem.linear + shrink * image
        primal = lowest(slopes, self.groups)
        if primal <= point.primal:
            return point
        return replace(point, certificate=shrink * certificate, primal=primal, gradient=slopes)

    def advance(self, point: Point) -> Point | None:
        """One step of the monotone active set: add the most violated client, drop one by one."""
        start = point
        violation = self.violation(point)
        members = np.flatnonzero(point.weights > 0.0)
        members = np.union1d(members, [violation.argmax()])
        while self.iterations < self.max_iterations:
            weights = point.weights[members]
            target, exact = self.face_minimiser(members, point.smoothed)
            step = target - weights
            falling = step < 0.0
            limits = np.full(len(step), np.inf)
            limits[falling] = weights[falling] / -step[falling]
            limit = float(limits.min())
            if limit == np.inf:  # no weight falls, so none rises: the face is a point
                break
            best = 1.0 if exact else self.line_minimum(point, self.spread(members, step))
            length = min(limit, best)
            weights = weights + length * step
            if length == limit:
                blocking = limits.argmin()
                members, weights = np.delete(members, blocking), np.delete(weights, blocking)
            if not self.covers(members):
                break
            point = self.assess(members, weights)
            if length < limit:
                break
        return point if self.improves(point, start) else None

    def enlarged(self, point: Point) -> Indices:
        """The support and the worst violations, at most as many again: more would swamp it."""
        violation = self.violation(point)
        support = point.weights > 0.0
        violation[support] = 0.0
        worst = np.argsort(-violation, kind="stable")[: max(16, int(support.sum()))]
        support[worst[violation[worst] > 0.0]] = True
        return np.flatnonzero(support)

    def violation(self, point: Point) -> Vector:
        """How far each slope lies below the mean slope of its simplex, which is the multiplier."""
        products = point.weights * point.gradient
        multipliers = np.array([products[group].sum() for group in self.groups])
        violation: Vector = multipliers[self.problem.blocks] - point.gradient
        return violation

    def covers(self, members: Indices) -> bool:
        """Whether every simplex has a member: rounding can drop the last one."""
        counts = np.bincount(self.problem.blocks[members], minlength=len(self.groups))
        return bool(counts.all())

    def spread(self, members: Indices, values: Vector) -> Vector:
        full = np.zeros(len(self.problem.linear))
        full[members] = values
        return full

    def line_minimum(self, point: Point, step: Vector) -> float:
        """The alpha that minimises `F(w + alpha step) = beta u + c sqrt(C u^2 + E) + const`,
        where `u = alpha + <w, step> / C` in the product of `H + R`.
        """
        slope = float(self.problem.linear @ step)
        image = self.problem.quadratic @ step + self.ridge * step
        curvature = float(step @ image)
        cross = float(point.weights @ image)
        room = self.problem.radius**2 * curvature - slope**2
        if curvature <= 0.0 or room <= 0.0:
            return np.inf if slope < 0.0 else 1.0
        rest = max(point.smoothed**2 - cross**2 / curvature, 0.0)
        return -cross / curvature - slope * float(np.sqrt(rest / (curvature * room)))

    def face_minimiser(self, members: Indices, norm: float) -> tuple[Vector, bool]:
        """The weights of `members` that minimise F on their hull, or, where there are none, its
        majoriser at |Dw| = norm; and which of the two.
        """
        hull = self.hull(members)
        room = self.problem.radius**2 - hull.along
        exact = room > 1e-12 * self.problem.radius**2 and hull.distance > 0.0
        scale = (room / hull.distance) ** 0.5 if exact else self.problem.radius / norm
        return hull.nearest + hull.tilt / scale, exact

    def hull(self, members: Indices) -> "_Hull":
        """Solve for weights `w_0 + Z q`: w_0 is the reference of each simplex, `Z q` moves away.

        The products of differences, `K = Z' H Z`, may be singular too, but both right sides lie in
        its range, so the ridge does no harm; `H^-1 E` would not exist.
        """
        quadratic, ridge = self.problem.quadratic, self.ridge
        linear, blocks = self.problem.linear[members], self.problem.blocks[members]
        whole = len(members) == len(quadratic)
        while True:
            part = quadratic.copy() if whole else quadratic[members[:, None], members]
            part.flat[:: len(members) + 1] += ridge[members]
            # The smallest delta is the reference: small differences from a large one would drown.
            norms = part.diagonal().copy()
            references = np.array(
                [np.where(blocks == block, norms, np.inf).argmin() for block in self.numbers]
            )
            image = part[:, references].sum(axis=1)
            nearest = float(image[references].sum())
            part -= part[references][blocks]
            part -= part[:, references][:, blocks]
            part[references, references] = 1.0
            right = np.stack([image, linear], axis=1)
            right -= right[references][blocks]
            self.iterations += 1
            # K is symmetric, so its transpose is K in the order LAPACK overwrites in place.
            _, solved, failed = dposv(part.T, right, overwrite_a=1)
            if not failed:
                break
            self.ridge = ridge = 16.0 * ridge
        moves = -solved
        for column in (0, 1):
            moves[references, column] = np.bincount(blocks, solved[:, column])
        moves[references, 0] += 1.0
        along = float(right[:, 1] @ solved[:, 1])
        return _Hull(moves[:, 0], moves[:, 1], nearest - float(right[:, 0] @ solved[:, 0]), along)
