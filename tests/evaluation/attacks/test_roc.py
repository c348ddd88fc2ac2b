import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from foul.evaluation.attacks import roc
from foul.evaluation.attacks.roc import (
    auc,
    balanced_accuracy,
    best_threshold,
    bootstrap,
    fitted_hits,
    mean_hit,
    roc_points,
    thinned,
    tpr_at,
)

# Few values, so that ties are common.
groups = st.lists(st.sampled_from([-3.0, -0.5, 0.0, 0.1, 2.0, 7.0]), min_size=1, max_size=15)


def quantiles(shift: float, count: int) -> np.ndarray:
    """A normal sample without noise."""
    return np.asarray(norm.ppf((np.arange(count) + 0.5) / count) + shift)


@given(groups, groups)
def test_the_curve_is_that_of_scikit_learn(members: list[float], others: list[float]) -> None:
    truth = [1] * len(members) + [0] * len(others)
    fpr, tpr, _ = roc_curve(truth, members + others, drop_intermediate=False)
    ours = roc_points(members, others)
    np.testing.assert_allclose(ours[0], fpr, atol=1e-12)
    np.testing.assert_allclose(ours[1], tpr, atol=1e-12)
    assert auc(members, others) == pytest.approx(roc_auc_score(truth, members + others))


@given(groups, groups)
def test_the_area_counts_pairs_and_lies_under_the_curve(
    members: list[float], others: list[float]
) -> None:
    pairs = [(a > b) + 0.5 * (a == b) for a in members for b in others]
    fpr, tpr = roc_points(members, others)
    assert auc(members, others) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert auc(members, others) == pytest.approx(np.trapezoid(tpr, fpr), abs=1e-12)


@given(groups, groups)
def test_swapped_groups_give_the_complement(members: list[float], others: list[float]) -> None:
    assert auc(others, members) == pytest.approx(1 - auc(members, others), abs=1e-12)


@given(groups, groups, st.randoms())
def test_the_order_of_samples_does_not_matter(
    members: list[float], others: list[float], random: Random
) -> None:
    shuffled = random.sample(members, len(members)), random.sample(others, len(others))
    assert auc(*shuffled) == auc(members, others)
    assert tpr_at(0.2, *shuffled) == tpr_at(0.2, members, others)


@pytest.mark.parametrize("rising", [np.exp, np.cbrt, lambda x: 3 * x - 5])
@given(members=groups, others=groups)
def test_a_rising_map_changes_no_rank(
    rising: Callable[[np.ndarray], np.ndarray], members: list[float], others: list[float]
) -> None:
    mapped = rising(np.array(members)), rising(np.array(others))
    assert auc(*mapped) == auc(members, others)
    np.testing.assert_array_equal(roc_points(*mapped), roc_points(members, others))


# Levels that are no rounding error away from a share of the others.
@given(groups, groups, st.integers(0, 1000).map(lambda n: n / 1000))
def test_tpr_at_a_level_is_the_best_of_all_allowed_thresholds(
    members: list[float], others: list[float], level: float
) -> None:
    allowed = [math.inf] + [t for t in members + others if np.mean(np.array(others) >= t) <= level]
    best = max(np.mean(np.array(members) >= t) for t in allowed)
    assert tpr_at(level, members, others) == pytest.approx(best)


@given(st.integers(1, 400), st.data())
def test_a_level_of_some_samples_allows_so_many(count: int, data: st.DataObject) -> None:
    some = data.draw(st.integers(0, count))
    # Member k + 1/2 lies above others 0..k, so the k-th from above needs k false alarms.
    others, members = np.arange(count), np.arange(count) + 0.5
    assert tpr_at(some / count, members, others) == min(count, some + 1) / count


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 3.0])
def test_two_gaussians_have_the_known_curve(shift: float) -> None:
    members, others = quantiles(shift, 4000), quantiles(0, 4000)
    assert auc(members, others) == pytest.approx(norm.cdf(shift / math.sqrt(2)), abs=1e-3)
    for level in (0.001, 0.01, 0.1):
        expected = norm.cdf(shift + norm.ppf(level))
        assert tpr_at(level, members, others) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.8])
def test_two_uniforms_have_the_known_curve(shift: float) -> None:
    # Members on [a, 1 + a], others on [0, 1]: AUC = 1 - (1 - a)^2 / 2, TPR = a + FPR.
    grid = (np.arange(2000) + 0.5) / 2000
    assert auc(grid + shift, grid) == pytest.approx(1 - (1 - shift) ** 2 / 2, abs=1e-3)
    assert tpr_at(0.1, grid + shift, grid) == pytest.approx(shift + 0.1, abs=1e-3)


def test_equal_scores_make_one_diagonal() -> None:
    fpr, tpr = roc_points([2, 1, 1, 1], [1, 0])
    assert fpr.tolist() == [0, 0, 0.5, 1]
    assert tpr.tolist() == [0, 0.25, 1, 1]


def test_separable_and_constant_scores_by_hand() -> None:
    rng = np.random.default_rng(0)
    above, below = [5.0, 6.0, 5.5], [1.0, 2.0]
    assert auc(above, below) == tpr_at(0, above, below) == balanced_accuracy(above, below, rng) == 1
    assert auc(below, above) == tpr_at(0, below, above) == 0
    assert auc([3.0] * 5, [3.0] * 4) == balanced_accuracy([3.0] * 5, [3.0] * 4, rng) == 0.5
    assert tpr_at(0.99, [3.0] * 5, [3.0] * 4) == 0


@pytest.mark.parametrize("judge", [auc, roc_points, lambda m, o: tpr_at(0.1, m, o), best_threshold])
@pytest.mark.parametrize(
    ("members", "others", "reason"),
    [([], [1.0], "empty"), ([1.0], [], "empty"), ([math.nan], [1.0], "finite")],
)
def test_groups_that_cannot_be_judged_are_refused(
    judge: Callable[[list[float], list[float]], object],
    members: list[float],
    others: list[float],
    reason: str,
) -> None:
    with pytest.raises(ValueError, match=reason):
        judge(members, others)


@given(groups, groups)
def test_the_best_threshold_is_not_beaten_by_any(members: list[float], others: list[float]) -> None:
    def advantage(threshold: float) -> float:
        return float(
            np.mean(np.array(members) >= threshold) - np.mean(np.array(others) >= threshold)
        )

    best = advantage(best_threshold(members, others))
    for threshold in [-math.inf, math.inf, *members, *others]:
        assert best >= advantage(threshold) - 1e-12


def test_the_best_threshold_lies_half_way() -> None:
    assert best_threshold([4.0, 3.0], [1.0, 0.0]) == 2
    assert best_threshold([0.0], [1.0]) == math.inf
    assert best_threshold([0.0, 1.0], [-1.0, -2.0]) == -0.5
    # At 0.5 it is 1 - 1/2, at 2.5 it is 1/2 - 0: the higher.
    assert best_threshold([3.0, 1.0], [2.0, 0.0]) == 2.5


def test_the_balanced_accuracy_of_noise_is_one_half_and_not_more() -> None:
    fair, flattering = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        members, others = rng.normal(size=20), rng.normal(size=12)
        fair.append(balanced_accuracy(members, others, rng))
        threshold = best_threshold(members, others)
        flattering.append((np.mean(members >= threshold) + np.mean(others < threshold)) / 2)
    # The mean's standard error is about 0.005.
    assert np.mean(fair) == pytest.approx(0.5, abs=0.02)
    assert np.mean(flattering) > 0.6


def test_the_balanced_accuracy_of_gaussians_is_known() -> None:
    # At the best threshold, half-way, it is Phi(d / 2).
    rng = np.random.default_rng(1)
    members, others = rng.normal(1.5, 1, 4000), rng.normal(0, 1, 1000)
    assert balanced_accuracy(members, others, rng) == pytest.approx(norm.cdf(0.75), abs=0.02)


def test_groups_weigh_the_same_whatever_their_sizes() -> None:
    assert mean_hit((np.ones(10), np.zeros(1000))) == 0.5


def test_a_sample_is_judged_by_the_half_it_is_not_in() -> None:
    # One of two members is far below the others: it misleads the half it is in, and itself is
    # missed, whatever the halves.
    for seed in range(5):
        hits = fitted_hits([10.0, -10.0], [0.0, 0.0], np.random.default_rng(seed))
        assert hits[0].tolist() == [0, 0]
        assert sorted(hits[1]) == [1, 1]


def test_a_score_on_the_threshold_is_a_members() -> None:
    # The half with 4 and 2 has its threshold at 3.
    for seed in range(5):
        hits = fitted_hits([4.0, 3.0], [2.0, 2.0], np.random.default_rng(seed))
        assert mean_hit(hits) == 1


@pytest.mark.parametrize(("members", "others"), [([1.0], [0.0]), ([1.0], [0.0, 0.5, 0.2])])
def test_a_single_sample_tosses_a_coin(members: list[float], others: list[float]) -> None:
    rng = np.random.default_rng(0)
    assert balanced_accuracy(members, others, rng) == 0.5
    low, high = bootstrap(members, others, rng, 200)["accuracy"]
    assert low < 0.5 < high


@given(groups, groups, st.integers(2, 9))
def test_a_thinned_curve_keeps_its_ends_and_its_points(
    members: list[float], others: list[float], count: int
) -> None:
    fpr, tpr = roc_points(members, others)
    points = list(zip(*thinned(fpr, tpr, count), strict=True))
    assert len(points) <= count
    assert set(points) <= set(zip(fpr, tpr, strict=True))
    assert points == sorted(points)
    assert (points[0], points[-1]) == ((0, 0), (1, 1))


def test_a_thinned_curve_looks_the_same_on_a_logarithmic_axis() -> None:
    rng = np.random.default_rng(3)
    fpr, tpr = roc_points(rng.normal(1, 1, 6000), rng.normal(0, 1, 2000))
    thin = thinned(fpr, tpr, 200)
    levels = np.geomspace(1 / 2000, 1, 500)

    def height(curve: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return np.asarray(curve[1][np.searchsorted(curve[0], levels, side="right") - 1])

    assert np.abs(height(thin) - height((fpr, tpr))).max() < 0.03
    # Where FPRs are sparse, both ends of a rise are there.
    for step in (1, 2, 3):
        assert (thin[0] == step / 2000).sum() == 2


def test_a_short_curve_stays_and_its_ends_are_the_least() -> None:
    fpr, tpr = roc_points([3.0, 1.0], [2.0, 0.0])
    assert thinned(fpr, tpr, 5)[1] is tpr
    assert thinned(fpr, tpr, 2)[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="count is 1"):
        thinned(fpr, tpr, 1)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_intervals_cover_the_truth_about_19_times_in_20(shift: float) -> None:
    held = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        found = bootstrap(rng.normal(shift, 1, 80), rng.normal(0, 1, 60), rng, 200)["auc"]
        held.append(found[0] <= norm.cdf(shift / math.sqrt(2)) <= found[1])
    assert 0.9 <= np.mean(held) <= 0.99


def test_intervals_are_those_of_resampled_scores() -> None:
    # The slow way: draw scores, not counts.
    rng = np.random.default_rng(7)
    members, others = rng.integers(2, 14, 60).astype(float), rng.integers(0, 12, 100).astype(float)
    hits = fitted_hits(members, others, rng)
    slow: dict[str, list[float]] = {"auc": [], "accuracy": [], "tpr_1": []}
    for _ in range(2000):
        m, o = rng.integers(60, size=60), rng.integers(100, size=100)
        slow["auc"].append(auc(members[m], others[o]))
        slow["tpr_1"].append(tpr_at(0.01, members[m], others[o]))
        slow["accuracy"].append((hits[0][m].mean() + hits[1][o].mean()) / 2)
    fast = bootstrap(members, others, rng, 2000, hits)
    for name, values in slow.items():
        assert fast[name] == pytest.approx(np.percentile(values, [2.5, 97.5]), abs=0.015)


@given(groups, groups)
def test_intervals_hold_what_was_measured(members: list[float], others: list[float]) -> None:
    rng = np.random.default_rng(0)
    hits = fitted_hits(members, others, rng)
    found = bootstrap(members, others, rng, 300, hits)
    assert found["auc"][0] <= auc(members, others) + 1e-12
    assert found["auc"][1] >= auc(members, others) - 1e-12
    assert found["accuracy"][0] <= mean_hit(hits) + 1e-12
    assert found["accuracy"][1] >= mean_hit(hits) - 1e-12


def test_intervals_narrow_with_the_root_of_the_samples() -> None:
    widths = []
    for count in (100, 1600):
        found = bootstrap(
            quantiles(0.5, count), quantiles(0, count), np.random.default_rng(0), 1000
        )
        widths.append([high - low for low, high in found.values()])
    np.testing.assert_allclose(np.array(widths[0])[:2] / np.array(widths[1])[:2], 4, rtol=0.25)


def test_a_seed_decides_the_intervals_and_chunks_do_not_change_their_meaning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    members, others = quantiles(0.5, 50), quantiles(0, 30)
    first = bootstrap(members, others, np.random.default_rng(4))
    assert bootstrap(members, others, np.random.default_rng(4)) == first
    monkeypatch.setattr(roc, "CELLS", 200)
    chunked = bootstrap(members, others, np.random.default_rng(4))
    assert chunked["auc"] == pytest.approx(first["auc"], abs=0.03)
