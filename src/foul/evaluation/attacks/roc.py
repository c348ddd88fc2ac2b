"""How well scores tell members from others: the ROC curve, numbers read off it, and intervals.

A threshold calls every sample from it upwards a member. TPR is the share of members it calls so,
FPR the share of others. All functions take the scores of the two groups, larger for a likelier
member, and raise ValueError if a group is empty or a score is not finite.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]
Places = NDArray[np.intp]
Hits = tuple[Vector, Vector]
Interval = tuple[float, float]

CELLS = 1 << 19
"""Counts that a chunk of resamples may hold at once: 4 MB an array."""


def roc_points(members: ArrayLike, others: ArrayLike) -> tuple[Vector, Vector]:
    """FPR and TPR of every threshold, from (0, 0) to (1, 1).

    There is one point per distinct score, so equal scores of both groups make one diagonal.
    """
    m, o = _tally(members, others)
    return _shares(o), _shares(m)


def auc(members: ArrayLike, others: ArrayLike) -> float:
    """P(a member's score > another's) + P(equal) / 2: the area under the curve, by Mann and
    Whitney. One half is chance."""
    return float(_area(*_tally(members, others)))


def tpr_at(fpr_level: float, members: ArrayLike, others: ArrayLike) -> float:
    """The largest TPR of a threshold whose FPR is at most the level; nothing is interpolated."""
    return float(_tpr_at(fpr_level, *_tally(members, others)))


def balanced_accuracy(members: ArrayLike, others: ArrayLike, rng: np.random.Generator) -> float:
    """The mean of TPR and 1 - FPR, each sample being judged by a threshold that was fitted to the
    half it is not in (`fitted_hits`). So scores that say nothing give 1/2 on average."""
    return mean_hit(fitted_hits(members, others, rng))


def mean_hit(hits: Hits) -> float:
    """Both groups weigh the same, whatever their sizes."""
    return float(hits[0].mean() + hits[1].mean()) / 2


def fitted_hits(members: ArrayLike, others: ArrayLike, rng: np.random.Generator) -> Hits:
    """For each member and each other: 1 if a threshold fitted to the other half (random halves of
    either group) judges it rightly, else 0.

    A group of one sample has no halves; then every hit is 1/2, a coin's.
    """
    m, o = _scores(members, others)
    if min(len(m), len(o)) < 2:
        return np.full(len(m), 0.5), np.full(len(o), 0.5)
    m_half, o_half = (rng.permutation(len(group)) % 2 == 0 for group in (m, o))
    m_hits, o_hits = np.empty(len(m)), np.empty(len(o))
    for half in (True, False):
        threshold = best_threshold(m[m_half != half], o[o_half != half])
        m_hits[m_half == half] = m[m_half == half] >= threshold
        o_hits[o_half == half] = o[o_half == half] < threshold
    return m_hits, o_hits


def best_threshold(members: ArrayLike, others: ArrayLike) -> float:
    """The threshold with the largest TPR - FPR, half-way between two scores; the highest such, and
    infinite if it is best to call nobody or everybody a member."""
    levels, m_places, o_places = _ranked(members, others)
    advantage = _shares(np.bincount(m_places, minlength=len(levels))) - _shares(
        np.bincount(o_places, minlength=len(levels))
    )
    best = int(advantage.argmax())
    if best == 0:
        return np.inf
    return float(levels[best - 1] / 2 + levels[best] / 2) if best < len(levels) else -np.inf


def thinned(fpr: Vector, tpr: Vector, count: int) -> tuple[Vector, Vector]:
    """At most `count` (2 or more) points of a curve that look the same where FPR has a logarithmic
    axis: the first, the last, and both ends of the rises nearest below FPRs spread evenly in log.
    """
    if count < 2:
        raise ValueError(f"count is {count}: a curve keeps its two ends at least")
    if len(fpr) <= count:
        return fpr, tpr
    aims = np.geomspace(fpr[fpr > 0][0], fpr[-1], (count - 2) // 2)
    tops = np.searchsorted(fpr, aims, side="right") - 1
    feet = np.searchsorted(fpr, fpr[tops], side="left")
    keep = np.unique(np.concatenate([[0, len(fpr) - 1], tops, feet]))
    return fpr[keep], tpr[keep]


def bootstrap(
    members: ArrayLike,
    others: ArrayLike,
    rng: np.random.Generator,
    resamples: int = 1000,
    hits: Hits | None = None,
) -> dict[str, Interval]:
    """95 % percentile intervals of `auc`, `accuracy` (balanced) and `tpr_1` (TPR at 1 % FPR).

    Members and others are resampled separately. The thresholds of the accuracy stay as fitted:
    `hits` if given, else fitted here.
    """
    levels, *places = _ranked(members, others)
    m_hits, o_hits = hits or fitted_hits(members, others, rng)
    areas, rates = np.empty(resamples), np.empty(resamples)
    step = max(1, CELLS // sum(len(group) for group in places))
    for start in range(0, resamples, step):
        chunk = slice(start, min(start + step, resamples))
        rows = chunk.stop - chunk.start
        m, o = (_resampled(group, len(levels), rows, rng) for group in places)
        areas[chunk] = _area(m, o)
        rates[chunk] = _tpr_at(0.01, m, o)
    # A resample's number of hits is binomial, so the hits themselves need not be drawn.
    drawn = [rng.binomial(len(h), h.mean(), resamples) / len(h) for h in (m_hits, o_hits)]
    return {
        "auc": _interval(areas),
        "accuracy": _interval((drawn[0] + drawn[1]) / 2),
        "tpr_1": _interval(rates),
    }


def _scores(members: ArrayLike, others: ArrayLike) -> tuple[Vector, Vector]:
    m, o = np.asarray(members, dtype=np.float64), np.asarray(others, dtype=np.float64)
    if not m.size or not o.size:
        raise ValueError("the attack needs members and others; one of the groups is empty")
    if not (np.isfinite(m).all() and np.isfinite(o).all()):
        raise ValueError("the attack needs finite scores; some are NaN or infinite")
    return m, o


def _ranked(members: ArrayLike, others: ArrayLike) -> tuple[Vector, Places, Places]:
    """The distinct scores downwards, and each member's and each other's place among them."""
    m, o = _scores(members, others)
    levels, places = np.unique(-np.concatenate([m, o]), return_inverse=True)
    return -levels, places[: len(m)], places[len(m) :]


def _tally(members: ArrayLike, others: ArrayLike) -> tuple[Counts, Counts]:
    """How many members and how many others have each distinct score, downwards."""
    levels, m_places, o_places = _ranked(members, others)
    m, o = (np.bincount(places, minlength=len(levels)) for places in (m_places, o_places))
    return m, o


def _resampled(places: Places, levels: int, rows: int, rng: np.random.Generator) -> Counts:
    """A tally of as many draws with replacement in each row: multinomial counts."""
    drawn = places[rng.integers(len(places), size=(rows, len(places)))]
    cells = drawn + levels * np.arange(rows)[:, None]
    return np.bincount(cells.ravel(), minlength=rows * levels).reshape(rows, levels)


def _shares(counts: Counts) -> Vector:
    """The share of a group from each distinct score upwards, beginning with none."""
    shares: Vector = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    return shares


def _area(m: Counts, o: Counts) -> Vector:
    """The AUC of each row of tallies."""
    beaten_by = np.cumsum(m, axis=-1) - m / 2
    area: Vector = (beaten_by * o).sum(axis=-1) / (m.sum(axis=-1) * o.sum(axis=-1))
    return area


def _tpr_at(level: float, m: Counts, o: Counts) -> Vector:
    """The TPR at an FPR of each row of tallies."""
    # A level such as 0.29 must allow 29 of 100 although 0.29 * 100 is rounded to less.
    allowed = level * o.sum(axis=-1, keepdims=True) + 1e-9
    rate: Vector = (m * (np.cumsum(o, axis=-1) <= allowed)).sum(axis=-1) / m.sum(axis=-1)
    return rate


def _interval(values: Vector) -> Interval:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
