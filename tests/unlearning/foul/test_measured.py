import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.measured import after_leaving, pooled

COUNTS = st.integers(1, 500).flatmap(
    lambda samples: st.integers(0, samples).map(lambda correct: Counts(correct, samples))
)
DOMAINS = st.dictionaries(st.sampled_from("abcdef"), COUNTS, min_size=1)


@given(DOMAINS)
def test_shares_are_drawn_towards_one_mean_and_never_past_it(domains: dict[str, Counts]) -> None:
    drawn = pooled(domains)
    shares = {domain: counts.share for domain, counts in domains.items()}
    assert min(shares.values()) - 1e-9 <= min(drawn.values())
    assert max(drawn.values()) <= max(shares.values()) + 1e-9


@given(DOMAINS)
def test_the_order_of_domains_does_not_matter(domains: dict[str, Counts]) -> None:
    backwards = dict(reversed(domains.items()))
    assert pooled(domains) == pytest.approx(pooled(backwards), abs=1e-12)


def test_a_domain_alone_keeps_its_share() -> None:
    assert pooled({"a": Counts(7, 10), "b": Counts()}) == {"a": pytest.approx(0.7)}


def test_domains_that_chance_may_have_parted_are_one() -> None:
    drawn = pooled({"a": Counts(90, 100), "b": Counts(93, 100), "c": Counts(91, 100)})
    assert max(drawn.values()) - min(drawn.values()) < 1e-9
    assert drawn["a"] == pytest.approx(0.914, abs=0.002)


def test_domains_that_differ_stay_apart() -> None:
    domains = {"a": Counts(900, 1000), "b": Counts(300, 1000), "c": Counts(600, 1000)}
    drawn = pooled(domains)
    assert all(abs(drawn[d] - domains[d].share) < 0.002 for d in domains)


def test_it_is_the_estimate_of_random_effects() -> None:
    """The spread, found as the one at which Cochran's Q has the moment's mean (the definition of
    DerSimonian and Laird), with the formulas typed again."""
    correct, samples = np.array([94.0, 96, 80, 92]), np.array([100.0, 100, 100, 110])
    p = correct / samples
    half = (correct + 0.5) / (samples + 1)
    v = half * (1 - half) / samples
    w = 1 / v

    def excess(spread: float) -> float:
        q = (w * (p - np.average(p, weights=w)) ** 2).sum()
        expected = (w * (v + spread)).sum() - (w**2 * (v + spread)).sum() / w.sum()
        return float(q - expected)

    spread = brentq(excess, 0.0, 1.0)
    assert spread > 1e-4
    mean = np.average(p, weights=1 / (v + spread))
    expected = (spread * p + v * mean) / (spread + v)
    told = {
        name: Counts(int(c), int(n)) for name, c, n in zip("abcd", correct, samples, strict=True)
    }
    assert list(pooled(told).values()) == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize(
    ("accuracy", "kept", "power", "expected"),
    [
        (0.9, 1.0, 0.3, 0.9),
        (0.9, 0.8, 0.0, 0.9),
        (0.9, 0.8, 0.3, 1 - 0.1 * math.exp(0.3 * math.log(1.25))),
        (1.0, 0.1, 0.3, 1.0),
        (0.2, 0.001, 0.3, 0.0),
    ],
)
def test_errors_grow_with_a_power_of_the_samples_that_are_missing(
    accuracy: float, kept: float, power: float, expected: float
) -> None:
    assert after_leaving(accuracy, kept, power) == pytest.approx(expected)
