"""The convex solver: minimise `F(w) = <b, w> + c sqrt(w' H w)` over a product of simplices.

`H` is the Gram matrix of the signed deltas, `b` their products with the anchor, `c` the radius of
the ball. A face's minimiser is known in closed form (faces.py), so only the face has to be found.
Block pivoting (drop every negative weight, add the violated ones together) does that in about five
factorisations; where it stalls, one step of a monotone active set, which adds a single client,
moves on.

F has no gradient where Dw = 0, and H is singular when deltas are linearly dependent. Both are met
by a ridge of a few rounding errors, `H + R` with R diagonal: it makes the minimiser unique, and
`x = g + D y` with `y = c w / sqrt(w' (H + R) w)` lies in the ball, so `F(w) - Phi(x)`, evaluated
without the ridge, stays a valid gap everywhere.

The paper prints the problem only; its authors take 20 steps of softmax gradient descent on it,
without the products between retain and forget clients and without a gap.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from foul.matching.conic import solve_conic
from foul.matching.convex import INSIDE, Indices, Point, Problem, Vector, groups_of, lowest
from foul.matching.faces import Faces
from foul.matching.simplex import project_simplices

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# A gap above this, in a problem scaled to 1, says that the active set has stalled.
_STALLED = 1e-7


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


class _Solver:
    """One run: the problem, its simplices and its faces."""

    def __init__(self, problem: Problem, tolerance: float, max_iterations: int) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.groups = groups_of(problem.blocks)
        self.norms: Vector = np.sqrt(problem.quadratic.diagonal())
        self.faces = Faces(problem)

    def run(self) -> Point:
        shares = 1.0 / np.bincount(self.problem.blocks)
        members = np.arange(len(self.problem.linear))
        point = self.descend(self.assess(members, shares[self.problem.blocks]), members)
        if point.gap > max(_STALLED, self.tolerance):
            point = self.rescued(point)
        return replace(point, iterations=self.faces.factorised)

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
        return point.gap <= self.tolerance or self.faces.factorised >= self.max_iterations

    def evaluate(self, weights: Vector) -> Point:
        problem = self.problem
        image = problem.quadratic @ weights
        squared = max(float(weights @ image), 0.0)
        norm = squared**0.5
        smoothed = (squared + float(self.faces.ridge @ weights**2)) ** 0.5
        certificate = (problem.radius / smoothed) * weights
        slopes = problem.linear + (problem.radius / smoothed) * image
        return Point(
            weights=weights,
            certificate=certificate,
            objective=float(problem.linear @ weights) + problem.radius * norm,
            primal=lowest(slopes, self.groups),
            norm=norm,
            smoothed=smoothed,
            gradient=slopes + self.faces.ridge * certificate,
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
            weights, _ = self.faces.minimiser(members, stride * point.smoothed)
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
        tilt = self.spread(members, self.faces.hull(members).tilt)
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
        while self.faces.factorised < self.max_iterations:
            weights = point.weights[members]
            target, exact = self.faces.minimiser(members, point.smoothed)
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
        image = self.problem.quadratic @ step + self.faces.ridge * step
        curvature = float(step @ image)
        cross = float(point.weights @ image)
        room = self.problem.radius**2 * curvature - slope**2
        if curvature <= 0.0 or room <= 0.0:
            return np.inf if slope < 0.0 else 1.0
        rest = max(point.smoothed**2 - cross**2 / curvature, 0.0)
        return -cross / curvature - slope * float(np.sqrt(rest / (curvature * room)))
