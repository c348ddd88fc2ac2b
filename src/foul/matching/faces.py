"""The faces of a product of simplices: where `F(w) = <b, w> + c sqrt(w' H w)` is least on one.

On the affine hull of a face the minimiser is known in closed form. Write its points as
`w_0 + Z q`, with `K = Z' H Z`, and

    nearest = w_0 - Z K^-1 Z' H w_0    its point nearest to the origin
    tilt    = -Z K^-1 Z' b             D tilt takes from g its part along the hull
    s       = |D nearest|^2
    rho     = |D tilt|^2
    tau     = sqrt((c^2 - rho) / s)    = c / |Dw|
    w       = nearest + tilt / tau

so one Cholesky factorisation gives the exact minimiser of a face. Where `rho >= c^2`, F falls
without end along the hull: there the majoriser `<b, w> + (w' H w / t + t c^2) / 2` with
`t = |Dw| / c` is minimised instead.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from foul.matching.convex import Indices, Problem, Vector

_EPS = float(np.finfo(np.float64).eps)


class Hull(NamedTuple):
    """The closed form of a face: see the head of this file."""

    nearest: Vector
    tilt: Vector
    distance: float  # s
    along: float  # rho


class Faces:
    """The faces of one problem.

    Attributes:
        ridge: the diagonal R that is added to H. Below it, a Cholesky factorisation of a singular
            matrix drowns in rounding errors; it grows where that happens all the same.
        factorised: factorisations so far.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        # Each client has its own, so that a large delta does not drown the small ones.
        diagonal = problem.quadratic.diagonal()
        self.ridge: Vector = 8 * _EPS * len(diagonal) * np.maximum(diagonal, 1e-8 * diagonal.max())
        self.factorised = 0
        self.numbers = range(int(problem.blocks.max()) + 1)

    def minimiser(self, members: Indices, norm: float) -> tuple[Vector, bool]:
        """The weights of `members` that minimise F on their hull, or, where there are none, its
        majoriser at |Dw| = norm; and which of the two.
        """
        hull = self.hull(members)
        room = self.problem.radius**2 - hull.along
        exact = room > 1e-12 * self.problem.radius**2 and hull.distance > 0.0
        scale = (room / hull.distance) ** 0.5 if exact else self.problem.radius / norm
        return hull.nearest + hull.tilt / scale, exact

    def hull(self, members: Indices) -> Hull:
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
            self.factorised += 1
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
        return Hull(moves[:, 0], moves[:, 1], nearest - float(right[:, 0] @ solved[:, 0]), along)
