"""The same convex problem for more clients than a Gram matrix allows, from a factor `H = Z Z'`.

Most weights of a minimiser are 0 (with m columns in Z, at most about m are not), so clients are
taken in by need: solve the problem of a small working set exactly, price every client with one
product `Z (Z' y)`, take in those that would lower F, let go of those without weight. F falls from
round to round, and the gap is that of the whole problem, since Phi is taken over all clients.
"""

from dataclasses import replace

import numpy as np

from foul.matching.convex import Indices, Matrix, Point, Problem, Vector, groups_of, lowest
from foul.matching.solver import solve


def solve_factored(
    factor: Matrix,
    linear: Vector,
    radius: float,
    blocks: Indices,
    tolerance: float = 1e-10,
    batch: int = 256,
    max_rounds: int = 200,
) -> Point:
    """The minimiser of `<linear, w> + radius |factor' w|` over the simplices named by `blocks`.

    Args:
        factor: Z, one row per client.
        batch: clients taken in per round.
        max_rounds: stop after so many products with the whole factor.
    """
    groups = groups_of(blocks)
    centre = factor.T @ (1.0 / np.bincount(blocks)[blocks])
    slopes = linear + radius * (factor @ centre) / max(float(np.linalg.norm(centre)), 1e-300)
    members = np.unique(np.concatenate([_lowest(slopes, group, batch) for group in groups]))
    best: Point | None = None
    iterations = 0
    for _ in range(max_rounds):
        part = factor[members]
        problem = Problem(part @ part.T, linear[members], radius, blocks[members])
        inner = solve(problem, tolerance / 2)
        iterations += inner.iterations
        slopes = linear + factor @ (part.T @ inner.certificate)
        point = _widened(inner, members, slopes, groups, iterations)
        if best is None or point.gap < best.gap:
            best = point
        if best.gap <= tolerance:
            break
        enlarged = _enlarged(point, slopes, groups, batch)
        if np.isin(enlarged, members).all():
            break
        members = enlarged
    assert best is not None
    return best


def _widened(
    inner: Point, members: Indices, slopes: Vector, groups: list[Indices], iterations: int
) -> Point:
    """The solution of the working set as a point of the whole problem."""
    weights, certificate = np.zeros_like(slopes), np.zeros_like(slopes)
    weights[members] = inner.weights
    certificate[members] = inner.certificate
    return replace(
        inner,
        weights=weights,
        certificate=certificate,
        primal=lowest(slopes, groups),
        gradient=slopes,
        iterations=iterations,
    )


def _enlarged(point: Point, slopes: Vector, groups: list[Indices], batch: int) -> Indices:
    """Clients with weight, and those of each simplex whose slope lies furthest below their mean."""
    chosen = [np.flatnonzero(point.weights > 0.0)]
    for group in groups:
        mean = float(point.weights[group] @ slopes[group])
        candidates = _lowest(slopes, group, batch)
        chosen.append(candidates[slopes[candidates] < mean])
    return np.unique(np.concatenate(chosen))


def _lowest(slopes: Vector, group: Indices, count: int) -> Indices:
    order: Indices = group[np.argsort(slopes[group], kind="stable")[:count]]
    return order
