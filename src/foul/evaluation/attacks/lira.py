"""The likelihood-ratio attack: what a sample's score would be with and without training on it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

Vector = NDArray[np.float64]

VARIANCE_FLOOR = 1e-6
"""Shadows that agree more closely than 0.001 say nothing more about a score."""

MANY_SHADOWS = 64
"""From so many on, a sample has a variance of its own (Carlini et al.)."""


class Gaussian(NamedTuple):
    """A normal distribution for each sample."""

    mean: Vector
    variance: Vector


def lira_scores(
    observed: ArrayLike,
    in_scores: ArrayLike | None,
    out_scores: ArrayLike,
    global_variance: bool | None = None,
) -> Vector:
    r"""How much likelier each sample's score is if the sample was trained on; larger: a member.

    Each side of a sample is a Gaussian over shadow models. Online (Carlini et al., 2022):

    .. math:: \log \mathcal{N}(o; \mu_{in}, \sigma_{in}^2)
       - \log \mathcal{N}(o; \mu_{out}, \sigma_{out}^2) .

    Offline, without ``in_scores``, it is one-sided: minus the log of the chance that a model that
    never saw the sample scores higher,

    .. math:: -\log \Pr[Z > o], \qquad Z \sim \mathcal{N}(\mu_{out}, \sigma_{out}^2) .

    Scores should be near Gaussian over models: the margin is. In U-LiRA (Hayes et al., 2024)
    ``in`` are models that trained on the sample and unlearned it, ``out`` those that never did.

    Args:
        observed: ``[N]``, of the attacked model.
        in_scores: ``[N, S1]``; NaN where a shadow says nothing about a sample.
        out_scores: ``[N, S0]``, likewise.
        global_variance: one variance for all samples of a side,
            :math:`\sum_{n, s} (x_{ns} - \mu_n)^2 / \sum_n (S_n - 1)`. By default if some sample has
            fewer than 64 shadows on a side. A sample with a single shadow always takes it.

    Returns:
        ``[N]``; NaN for a sample about which a side says nothing.

    Raises:
        ValueError: no sample has two shadows on a side, so there is no variance.
    """
    score = np.asarray(observed, dtype=np.float64)
    sides = [np.asarray(s, dtype=np.float64) for s in (out_scores, in_scores) if s is not None]
    for side in sides:
        if side.ndim != 2 or len(side) != len(score):
            raise ValueError(f"{len(score)} samples need as many rows, not shape {side.shape}")
    if global_variance is None:
        global_variance = any(_fewest(side) < MANY_SHADOWS for side in sides)
    without, *within = (_fit(side, global_variance) for side in sides)
    if not within:
        return _surprise(score, without)
    return _log_density(score, within[0]) - _log_density(score, without)


def _fewest(scores: Vector) -> int:
    """Shadows of the sample that has fewest, of those that have any."""
    counts = (~np.isnan(scores)).sum(axis=1)
    return int(counts[counts > 0].min(initial=MANY_SHADOWS))


def _fit(scores: Vector, global_variance: bool) -> Gaussian:
    """Each sample's mean and unbiased variance over the shadows that say something about it."""
    known = ~np.isnan(scores)
    count = known.sum(axis=1)
    mean = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(count, 1)
    squares = np.where(known, scores - mean[:, None], 0.0) ** 2
    freedom = np.maximum(count - 1, 0)
    if not freedom.any():
        raise ValueError("LiRA needs two shadow models or more about a sample on either side")
    variance = np.full(len(scores), squares.sum() / freedom.sum())
    if not global_variance:
        own = freedom > 0
        variance[own] = squares.sum(axis=1)[own] / freedom[own]
    return Gaussian(np.where(count > 0, mean, np.nan), np.maximum(variance, VARIANCE_FLOOR))


def _log_density(score: Vector, side: Gaussian) -> Vector:
    """Up to the constant that both sides share."""
    density: Vector = -((score - side.mean) ** 2 / side.variance + np.log(side.variance)) / 2
    return density


def _surprise(score: Vector, side: Gaussian) -> Vector:
    surprise: Vector = -log_ndtr(-(score - side.mean) / np.sqrt(side.variance))
    return surprise
