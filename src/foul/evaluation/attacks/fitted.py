"""Attacks that learn from outputs what members look like, and are refitted on every model.

Their features are the sorted softmax probabilities, the loss and the margin, standardised. Scores
are out of fold: each sample is scored by a classifier that was fitted without it, so that what an
attack memorises is not taken for what the model does.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foul.evaluation.attacks.statistics import Matrix, Vector, loss, margin

FOLDS = 5
SVM_SAMPLES = 2000
"""Of each group in one fit: its time grows with the square of the samples."""

Indices = NDArray[np.intp]


def logistic(members: Matrix, others: Matrix, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Out-of-fold log-odds of a logistic regression with balanced classes."""
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    return _out_of_fold(model, members, others, rng)


def svm(members: Matrix, others: Matrix, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Out-of-fold distances to the border of an SVM with RBF kernel and balanced classes.

    Each fit takes `SVM_SAMPLES` random samples of a group at most; all samples are scored.
    """
    return _out_of_fold(SVC(class_weight="balanced"), members, others, rng, SVM_SAMPLES)


FITTED: dict[str, Callable[[Matrix, Matrix, np.random.Generator], tuple[Vector, Vector]]] = {
    "logistic": logistic,
    "svm": svm,
}


def features(logits: Matrix) -> Matrix:
    """The probabilities downwards, the loss and the margin: `[N, C + 2]`."""
    downwards = -np.sort(-softmax(np.asarray(logits, dtype=np.float64), axis=1), axis=1)
    return np.column_stack([downwards, loss(logits), margin(logits)])


def _out_of_fold(
    model: Any,
    members: Matrix,
    others: Matrix,
    rng: np.random.Generator,
    most: int | None = None,
) -> tuple[Vector, Vector]:
    """Scores by cross-fitting. All are 0, which is chance, if a group has one sample, because it
    cannot be fitted without it, or if all outputs are equal."""
    x = np.concatenate([features(members), features(others)])
    y = np.arange(len(x)) < len(members)
    scores = np.zeros(len(x))
    # Of equal outputs an SVM makes its arbitrary offset, which differs between folds.
    informative = np.ptp(x, axis=0).any()
    for fitted, scored in _folds(y, rng, most) if informative else ():
        classifier = make_pipeline(StandardScaler(), model).fit(x[fitted], y[fitted])
        scores[scored] = classifier.decision_function(x[scored])
    return scores[: len(members)], scores[len(members) :]


def _folds(
    is_member: NDArray[np.bool_], rng: np.random.Generator, most: int | None
) -> Iterator[tuple[Indices, Indices]]:
    """Pairs of samples to fit (at most so many of each group) and samples to score. Every fold has
    the groups' proportions; there are fewer folds if a group has fewer samples than `FOLDS`."""
    groups = [rng.permutation(np.flatnonzero(is_member == side)) for side in (True, False)]
    folds = min(FOLDS, *(len(group) for group in groups))
    if folds < 2:
        return
    for fold in range(folds):
        left_out = [np.arange(len(group)) % folds == fold for group in groups]
        fitted = [group[~out][:most] for group, out in zip(groups, left_out, strict=True)]
        scored = [group[out] for group, out in zip(groups, left_out, strict=True)]
        yield np.concatenate(fitted), np.concatenate(scored)
