r"""FedOSD's projections. Both end in one weight per update, so the Gram matrix is all they need."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

CUT_OFF = 1e-10
"""Eigenvalues below this share of the largest one are rounding."""
_NOTHING = 1e-6
"""A squared length below this share of what it was may be rounding: products of float32 updates
have 7 digits."""


def orthogonal_weights(gram: Matrix, forget: NDArray[np.bool_]) -> Vector:
    r"""Weights of the updates whose sum is the part of the forget clients' mean :math:`g_u` that is
    orthogonal to every retain client's update, with the length of :math:`g_u`:

    .. math:: c = g_u - G^T (G G^T)^+ G g_u, \qquad d = c \, \|g_u\| / \|c\| .

    Rows of G are brought to length 1 first: the span is the same, and the cut-off of the
    pseudo-inverse no longer depends on how long updates are. All zeros if nothing of g_u is left.
    """
    mean = forget / max(1, forget.sum())
    lengths = np.sqrt(np.diag(gram))
    retain = np.flatnonzero(~forget & (lengths > 0))
    weights = mean.astype(np.float64)
    if len(retain):
        unit = gram[np.ix_(retain, retain)] / np.outer(lengths[retain], lengths[retain])
        products = gram[retain] @ mean / lengths[retain]
        weights[retain] -= (
            np.linalg.pinv(unit, rcond=CUT_OFF, hermitian=True) @ products / (lengths[retain])
        )
    return _of_length(gram, weights, float(mean @ gram @ mean))


def recovery_weights(gram: Matrix, always: bool = False) -> Vector:
    r"""Weights of the retain clients' updates and, last, of :math:`a = w - w_0`, the way from the
    learned model: their sum is the mean of updates that do not lead back.

    An update :math:`u_i` with :math:`u_i \cdot a < 0` (its gradient has :math:`g_i \cdot a > 0`)
    loses its part along a and keeps its length; `always` takes the part out of every update, as the
    authors' code does.
    """
    clients, squared = len(gram) - 1, float(gram[-1, -1])
    total = np.zeros(len(gram))
    for client in range(clients):
        weights = np.zeros(len(gram))
        weights[client] = 1.0
        along = float(gram[client, -1])
        if squared > 0 and (along < 0 or always):
            weights[-1] = -along / squared
            weights = _of_length(gram, weights, float(gram[client, client]))
        total += weights / clients
    return total


def _of_length(gram: Matrix, weights: Vector, squared: float) -> Vector:
    """The weights, scaled so that their sum has this squared length; zeros if they sum to none."""
    now = float(weights @ gram @ weights)
    if now <= _NOTHING * squared:
        return np.zeros_like(weights)
    scaled: Vector = weights * np.sqrt(squared / now)
    return scaled
