"""Drawing stratified samples: the test set of a domain, or a smaller version of it."""

from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def stratified_sample(strata: Rows, count: int, rng: np.random.Generator) -> Rows:
    """Draw ``count`` positions so that each stratum keeps its share, to within one.

    Args:
        strata: the stratum of each position.
        count: how many to draw; at most all.
        rng: where randomness comes from.

    Returns:
        The drawn positions, sorted.
    """
    shuffled = rng.permutation(len(strata))
    ordered = shuffled[np.argsort(strata[shuffled], kind="stable")]
    sizes = np.unique(strata, return_counts=True)[1]
    quotas = share_out(min(count, len(strata)), sizes)
    starts = np.cumsum(sizes) - sizes
    picks = [ordered[start : start + quota] for start, quota in zip(starts, quotas, strict=True)]
    return np.sort(np.concatenate(picks)).astype(np.int64)


def share_out(total: int, weights: NDArray[np.float64] | Rows) -> Rows:
    """Whole numbers that add up to ``total`` in proportion to the weights (largest remainder)."""
    exact = total * np.asarray(weights, np.float64) / np.sum(weights)
    whole: Rows = np.floor(exact).astype(np.int64)
    remainders = np.argsort(whole - exact, kind="stable")
    whole[remainders[: total - int(whole.sum())]] += 1
    return whole


def official_test_rows(paths: list[str]) -> Rows | None:
    """Rows of the official test part, if every file name starts with train_ or test_."""
    names = [PurePosixPath(path).name for path in paths]
    is_test = np.array([name.startswith("test_") for name in names])
    named = all(name.startswith(("train_", "test_")) for name in names)
    return np.flatnonzero(is_test) if named and 0 < is_test.sum() < len(names) else None
