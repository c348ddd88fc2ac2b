"""What one output says about membership: scores of aligned logits, larger for a likelier member.

Aligned logits `[N, C]` hold the true class's logit in column 0 and the others behind it, sorted
downwards, so that no label needs to leave a client.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logsumexp, xlog1py

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def loss(logits: Matrix) -> Vector:
    r"""Minus the cross-entropy, :math:`\log p_y`."""
    return -_softplus(-_log_odds(logits, 0))


def confidence(logits: Matrix) -> Vector:
    r"""The true class's probability :math:`p_y`."""
    probability: Vector = expit(_log_odds(logits, 0))
    return probability


def entropy(logits: Matrix) -> Vector:
    r"""Minus the entropy of the softmax, :math:`\sum_i p_i \log p_i`; it ignores the label."""
    logs = log_softmax(np.asarray(logits, dtype=np.float64), axis=1)
    total: Vector = (np.exp(logs) * logs).sum(axis=1)
    return total


def modified_entropy(logits: Matrix) -> Vector:
    r"""Minus the modified entropy of Song and Mittal (2021),

    .. math:: (1 - p_y) \log p_y + \sum_{i \ne y} p_i \log(1 - p_i) :

    being sure of a wrong class counts against membership, unlike in the entropy.
    """
    odds = _log_odds(logits, 0)
    total: Vector = -expit(-odds) * _softplus(-odds)
    if np.shape(logits)[1] > 1:
        # Of the other classes only the first can be likelier than 1/2, where 1 - p would cancel.
        rival = _log_odds(logits, 1)
        rest = np.exp(log_softmax(np.asarray(logits, dtype=np.float64), axis=1)[:, 2:])
        total = total - expit(rival) * _softplus(rival) + xlog1py(rest, -rest).sum(axis=1)
    return total


def margin(logits: Matrix) -> Vector:
    r"""The confidence on the logit scale, LiRA's statistic (Carlini et al., 2022),

    .. math:: \log \frac{p_y}{1 - p_y} = z_y - \log \sum_{i \ne y} e^{z_i} .

    Raises:
        ValueError: there is one class only, so :math:`1 - p_y = 0`.
    """
    if np.shape(logits)[1] < 2:
        raise ValueError("the margin needs two classes or more; these logits have one column")
    return _log_odds(logits, 0)


STATISTICS: dict[str, Callable[[Matrix], Vector]] = {
    "loss": loss,
    "confidence": confidence,
    "entropy": entropy,
    "modified_entropy": modified_entropy,
    "margin": margin,
}


def _log_odds(logits: Matrix, column: int) -> Vector:
    """log p - log(1 - p) of this column's class; infinite if it is the only one."""
    values = np.asarray(logits, dtype=np.float64)
    if values.shape[1] == 1:
        return np.full(len(values), np.inf)
    against = logsumexp(np.delete(values, column, axis=1), axis=1)
    odds: Vector = values[:, column] - against
    return odds


def _softplus(values: Vector) -> Vector:
    """log(1 + e^x): minus the log of a probability whose log-odds are -x."""
    soft: Vector = np.logaddexp(0.0, values)
    return soft
