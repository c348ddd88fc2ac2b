"""Membership inference from losses: were these samples trained on?"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata


def loss_auc(members: Sequence[float], others: Sequence[float]) -> float:
    """AUC of the attack "a small loss means member":
    P(loss of a member < loss of another) + P(equal) / 2. One half is chance.

    Raises:
        ValueError: one of the groups is empty.
    """
    if not len(members) or not len(others):
        raise ValueError("the attack needs members and others; one of the groups is empty")
    ranks = rankdata(np.concatenate([np.asarray(members), np.asarray(others)]))
    below = ranks[: len(members)].sum() - len(members) * (len(members) + 1) / 2
    return float(1 - below / (len(members) * len(others)))


def auc_interval(auc: float, members: int, others: int, z: float = 1.96) -> tuple[float, float]:
    r"""95 % interval of an AUC (Hanley and McNeil, 1982): with
    :math:`q_1 = A / (2 - A)` and :math:`q_2 = 2 A^2 / (1 + A)`,

    .. math:: s^2 = \frac{A (1 - A) + (m - 1)(q_1 - A^2) + (n - 1)(q_2 - A^2)}{m n}
    """
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = (
        auc * (1 - auc) + (members - 1) * (first - auc**2) + (others - 1) * (second - auc**2)
    ) / (members * others)
    width = z * max(0.0, variance) ** 0.5
    return max(0.0, auc - width), min(1.0, auc + width)
