import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.metrics import HEADLINE, METRICS

fractions = st.floats(0, 1)
keys = st.sampled_from(sorted(METRICS))


def test_every_metric_says_what_it_is() -> None:
    for key, metric in METRICS.items():
        assert metric.key == key
        assert metric.title
        assert metric.meaning
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)


def test_the_headline_is_decision_16() -> None:
    assert {key: METRICS[key].better for key in HEADLINE} == {
        "fa": "as retrain",
        "ra": "higher",
        "ta": "higher",
        "mia_accuracy": "as retrain",
    }
    assert {METRICS[key].unit for key in HEADLINE} == {"%"}


@pytest.mark.parametrize(
    ("key", "bounds", "scale"),
    [
        ("fa", (0, 1), 100),
        ("mia_auc", (0, 1), 1),
        ("kl_forget", (0, None), 1),
        ("bytes", (0, None), 1),
        ("rounds", (0, None), 1),
        # A method can make things worse with every round.
        ("t2f", (None, None), 1),
    ],
)
def test_bounds_and_scale(
    key: str, bounds: tuple[float | None, float | None], scale: float
) -> None:
    assert METRICS[key].bounds == bounds
    assert METRICS[key].scale == scale


@pytest.mark.parametrize(
    ("key", "value", "retrain", "gap", "loss"),
    [
        ("fa", 0.8, 0.5, 30, 30),
        # Forgetting more than Retrain shows too.
        ("fa", 0.2, 0.5, -30, 30),
        ("ra", 0.8, 0.9, -10, 10),
        ("ra", 1.0, 0.9, 10, 0),
        ("ta", 0.5, 0.75, -25, 25),
        ("mia_accuracy", 0.45, 0.5, -5, 5),
        ("mia_auc", 0.6, 0.5, 0.1, 0.1),
        ("kl_forget", 0.3, 0.0, 0.3, 0.3),
        ("bytes", 10, 30, -20, 0),
        ("bytes", 30, 10, 20, 20),
        ("t2f", 2.0, 5.0, -3, 3),
    ],
)
def test_gap_and_loss_by_hand(
    key: str, value: float, retrain: float, gap: float, loss: float
) -> None:
    assert METRICS[key].gap(value, retrain) == pytest.approx(gap)
    assert METRICS[key].loss(value, retrain) == pytest.approx(loss)


@given(keys, fractions, fractions)
def test_a_loss_is_never_negative_and_one_of_two_loses(key: str, one: float, other: float) -> None:
    metric = METRICS[key]
    there, back = metric.loss(one, other), metric.loss(other, one)
    assert there >= 0
    assert back >= 0
    assert max(there, back) == pytest.approx(abs(metric.gap(one, other)))
    assert metric.loss(one, one) == 0
    assert (there == back) or metric.better != "as retrain" or math.isclose(there, back)
