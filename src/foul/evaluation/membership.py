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
