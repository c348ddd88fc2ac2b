import numpy as np
import pytest
from scipy.stats import norm

from foul.evaluation.attacks import auc
from foul.evaluation.attacks.shadows import Members, Scores, shadow_lira, u_lira

SHADOWS, SAMPLES = 24, 300


def population(gain: float, seed: int = 0) -> tuple[Scores, Members]:
    """Samples of very different margins; having trained on one adds `gain` to it."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, 5, SAMPLES)
    members = rng.random((SHADOWS, SAMPLES)) < 0.5
    return own + rng.normal(0, 1, (SHADOWS, SAMPLES)) + gain * members, members


@pytest.mark.parametrize("gain", [0.0, 1.0, 2.0])
def test_lira_finds_what_training_adds(gain: float) -> None:
    scores, members = population(gain)
    found, false = shadow_lira(scores, members, ~members)
    assert len(found) == members.sum()
    assert len(false) == (~members).sum()
    # Two unit Gaussians, a little less for what shadows do not tell.
    assert auc(found, false) == pytest.approx(norm.cdf(gain / np.sqrt(2)), abs=0.03)
    # One threshold for all samples sees hardly anything.
    assert auc(scores[members], scores[~members]) < 0.62


@pytest.mark.parametrize("gain", [0.0, 1.5])
def test_u_lira_tells_unlearned_from_never_seen(gain: float) -> None:
    unlearned, members = population(gain)
    rng = np.random.default_rng(0)
    own = rng.normal(0, 5, SAMPLES)
    retrained = own + np.random.default_rng(9).normal(0, 1, (SHADOWS, SAMPLES))
    found, false = u_lira(unlearned, retrained, members)
    assert len(found) == len(false) == members.sum()
    assert auc(found, false) == pytest.approx(norm.cdf(gain / np.sqrt(2)), abs=0.03)


def test_a_sample_that_nobody_else_trained_on_is_left_out() -> None:
    scores, members = population(1.0)
    members[:, 0] = False
    members[0, 0] = True
    found, _ = shadow_lira(scores, members, ~members)
    assert len(found) == members.sum() - 1
    assert np.isfinite(found).all()


def test_samples_that_steered_are_on_neither_side() -> None:
    scores, members = population(1.0)
    others = ~members
    others[:, :50] = False
    found, false = shadow_lira(scores, members, others)
    assert len(false) == others.sum()
    assert len(found) == members[:, 50:].sum()
