import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from foul.evaluation.attacks.lira import lira_scores
from foul.evaluation.attacks.roc import auc

Array = NDArray[np.float64]


def population(
    rng: np.random.Generator, samples: int, shadows: int, gain: float = 1.5
) -> tuple[Array, Array, Array]:
    """Each sample has a difficulty of its own, far more varied than what training changes: the
    observed scores (the first half are members), and those of shadows with and without it."""
    difficulty = rng.normal(0, 10, (samples, 1))
    with_it = difficulty + gain + rng.normal(size=(samples, shadows))
    without = difficulty + rng.normal(size=(samples, shadows))
    member = np.arange(samples) < samples // 2
    observed = difficulty[:, 0] + gain * member + rng.normal(size=samples)
    return observed, with_it, without


def halves(scores: Array) -> tuple[Array, Array]:
    return scores[: len(scores) // 2], scores[len(scores) // 2 :]


@pytest.mark.parametrize("shadows", [16, 100])
def test_it_reaches_the_best_that_is_possible(shadows: int) -> None:
    # By Neyman and Pearson nothing beats the ratio, whose AUC is Phi(gain / sqrt(2)).
    observed, with_it, without = population(np.random.default_rng(0), 3000, shadows)
    best = norm.cdf(1.5 / math.sqrt(2))
    assert auc(*halves(lira_scores(observed, with_it, without))) == pytest.approx(best, abs=0.03)
    assert auc(*halves(lira_scores(observed, None, without))) == pytest.approx(best, abs=0.03)
    # What a sample says without its shadows is hidden by its difficulty.
    assert auc(*halves(observed)) < 0.6


def test_one_sample_by_the_formula() -> None:
    with_it, without = [4.0, 5.0, 9.0], [1.0, 2.0]
    score = lira_scores([3.0], [with_it], [without])
    inside = norm(np.mean(with_it), np.std(with_it, ddof=1))
    outside = norm(np.mean(without), np.std(without, ddof=1))
    assert score == pytest.approx([inside.logpdf(3.0) - outside.logpdf(3.0)])
    assert lira_scores([3.0], None, [without]) == pytest.approx([-outside.logsf(3.0)])


def test_a_global_variance_pools_the_deviations_of_all_samples() -> None:
    with_it = np.array([[0.0, 2.0], [10.0, 16.0]])
    without = np.array([[1.0, 1.5], [0.0, 1.0]])
    pooled = (1 + 1 + 9 + 9) / 2, (2 * 0.25**2 + 2 * 0.5**2) / 2
    expected = [
        norm(inside, math.sqrt(pooled[0])).logpdf(3.0)
        - norm(outside, math.sqrt(pooled[1])).logpdf(3.0)
        for inside, outside in ((1.0, 1.25), (13.0, 0.5))
    ]
    assert lira_scores([3.0, 3.0], with_it, without) == pytest.approx(expected)


@pytest.mark.parametrize(("shadows", "pools"), [(63, True), (64, False)])
def test_the_variance_is_global_while_shadows_are_few(shadows: int, pools: bool) -> None:
    observed, with_it, without = population(np.random.default_rng(1), 8, shadows)
    chosen = lira_scores(observed, with_it, without)
    np.testing.assert_array_equal(chosen, lira_scores(observed, with_it, without, pools))
    assert not np.allclose(chosen, lira_scores(observed, with_it, without, not pools))


def test_a_shadow_that_says_nothing_is_left_out() -> None:
    rng = np.random.default_rng(2)
    observed, with_it, without = population(rng, 6, 5)
    gap = np.full((6, 1), np.nan)
    padded = np.hstack([gap, with_it, gap]), np.hstack([without, gap])
    for variance in (True, False):
        np.testing.assert_allclose(
            lira_scores(observed, *padded, variance),
            lira_scores(observed, with_it, without, variance),
        )


def test_gaps_at_different_places_count_for_their_sample_only() -> None:
    with_it = np.array([[1.0, np.nan, 3.0], [np.nan, 7.0, 4.0]])
    without = np.array([[np.nan, 0.0, 1.0], [2.0, 3.0, np.nan]])
    alone = [
        lira_scores([2.0], [[1.0, 3.0]], [[0.0, 1.0]]),
        lira_scores([2.0], [[7.0, 4.0]], [[2.0, 3.0]]),
    ]
    scores = lira_scores([2.0, 2.0], with_it, without, global_variance=False)
    np.testing.assert_allclose(scores, np.concatenate(alone))


def test_gaps_can_make_many_shadows_few() -> None:
    observed, with_it, without = population(np.random.default_rng(3), 4, 70)
    with_it[0, :10] = np.nan
    np.testing.assert_array_equal(
        lira_scores(observed, with_it, without), lira_scores(observed, with_it, without, True)
    )


def test_a_sample_without_shadows_on_a_side_has_no_score() -> None:
    observed, with_it, without = population(np.random.default_rng(4), 5, 4)
    whole = lira_scores(observed[1:], with_it[1:], without[1:])
    with_it[0] = np.nan
    without[0] = np.nan
    scores = lira_scores(observed, with_it, without)
    assert np.isnan(scores[0])
    np.testing.assert_allclose(scores[1:], whole)
    assert np.isnan(lira_scores(observed, None, without)[0])


def test_a_single_shadow_takes_the_variance_of_all() -> None:
    with_it = np.array([[1.0, np.nan], [4.0, 6.0]])
    without = np.array([[0.0, np.nan], [2.0, 3.0]])
    expected = norm(1, math.sqrt(2)).logpdf(2) - norm(0, math.sqrt(0.5)).logpdf(2)
    for variance in (True, False):
        assert lira_scores([2.0, 5.0], with_it, without, variance)[0] == pytest.approx(expected)


def test_shadows_that_agree_do_not_make_scores_infinite() -> None:
    scores = lira_scores([1.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    # A variance of 1e-6 each.
    assert scores == pytest.approx([0.5e6, -0.5e6])


def test_offline_scores_rise_even_where_the_chance_rounds_to_zero() -> None:
    scores = lira_scores(np.array([-3.0, 0.0, 5.0, 50.0, 500.0]), None, [[-1.0, 1.0]] * 5)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()


def test_swapped_sides_turn_the_sign() -> None:
    observed, with_it, without = population(np.random.default_rng(5), 10, 8)
    np.testing.assert_allclose(
        lira_scores(observed, with_it, without), -lira_scores(observed, without, with_it)
    )


def test_one_shadow_for_everybody_has_no_variance() -> None:
    with pytest.raises(ValueError, match="two shadow models"):
        lira_scores([1.0, 2.0], None, [[1.0], [2.0]])


@pytest.mark.parametrize("without", [[[1.0, 2.0]], [1.0, 2.0]])
def test_shadows_of_other_samples_are_refused(without: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="2 samples need as many rows"):
        lira_scores([1.0, 2.0], None, without)
