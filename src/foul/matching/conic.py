"""The same problem as a second-order cone programme, for the rare case the active set stalls.

    min <b, w> + c t    subject to    |L' w| <= t,  w on the simplices,    H = L L'

Clarabel is slow here and its gaps reach 5e-5, but exact ties (repeated deltas whose hull holds the
origin) do not trouble it. Its answer serves as a new start and as a second certificate.
"""

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]


def solve_conic(
    quadratic: Matrix, linear: Vector, radius: float, blocks: Indices
) -> tuple[Vector, Vector]:
    """Weights (nonnegative and of sum 1 up to the solver's accuracy) and a certificate y."""
    values, vectors = np.linalg.eigh(quadratic)
    kept = values > 1e-14 * values[-1]
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    factor = vectors * roots
    size, rank = factor.shape
    simplices = np.arange(blocks.max() + 1)[:, None] == blocks
    rows = np.zeros((len(simplices) + size + 1 + rank, size + 1))
    rows[: len(simplices), :size] = simplices
    rows[len(simplices) : len(simplices) + size, :size] = -np.eye(size)
    rows[len(simplices) + size, size] = -1.0
    rows[len(simplices) + size + 1 :, :size] = -factor.T
    limits = np.zeros(len(rows))
    limits[: len(simplices)] = 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((size + 1, size + 1)),
        np.append(linear, radius),
        sparse.csc_matrix(rows),
        limits,
        [
            clarabel.ZeroConeT(len(simplices)),
            clarabel.NonnegativeConeT(size),
            clarabel.SecondOrderConeT(1 + rank),
        ],
        settings,
    ).solve()
    offset = -np.asarray(solution.z)[len(rows) - rank :]
    return np.asarray(solution.x)[:size], vectors @ (offset / roots)
