"""Likelihood-ratio attacks over shadow models: each of them is attacked with all the others."""

import numpy as np
from numpy.typing import NDArray

from foul.evaluation.attacks.lira import lira_scores

Scores = NDArray[np.float64]
"""`[S, N]`: shadow s's score (the margin) of sample n."""
Members = NDArray[np.bool_]
"""`[S, N]`: whether shadow s trained on sample n."""
Groups = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Scores of those that should be found, and of the others."""


def shadow_lira(scores: Scores, members: Members, others: Members) -> Groups:
    """LiRA: was this sample in the training data of this model? Members against the samples that
    the same model never saw; what the other shadows say of a sample is fitted by two Gaussians."""
    found: list[NDArray[np.float64]] = []
    false: list[NDArray[np.float64]] = []
    for target in range(len(scores)):
        rest = np.arange(len(scores)) != target
        ratio = lira_scores(
            scores[target],
            _where(scores[rest], members[rest]),
            _where(scores[rest], others[rest]),
        )
        found.append(ratio[members[target]])
        false.append(ratio[others[target]])
    return _known(found), _known(false)


def u_lira(unlearned: Scores, retrained: Scores, members: Members) -> Groups:
    """U-LiRA: did this model train on the sample and unlearn it, or never see it? The forgotten
    samples as the unlearned model answers them, against the same samples as the retrained model of
    the same shadow does."""
    found: list[NDArray[np.float64]] = []
    false: list[NDArray[np.float64]] = []
    for target in range(len(unlearned)):
        rest = np.arange(len(unlearned)) != target
        sides = _where(unlearned[rest], members[rest]), retrained[rest].T
        forgotten = members[target]
        found.append(lira_scores(unlearned[target], *sides)[forgotten])
        false.append(lira_scores(retrained[target], *sides)[forgotten])
    return _known(found), _known(false)


def _where(scores: Scores, chosen: Members) -> NDArray[np.float64]:
    """`[N, S]`, NaN where a shadow says nothing."""
    return np.where(chosen, scores, np.nan).T


def _known(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All scores but those about which the shadows said nothing."""
    joined = np.concatenate(parts)
    return joined[~np.isnan(joined)]
