import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.attacks.statistics import (
    STATISTICS,
    confidence,
    entropy,
    loss,
    margin,
    modified_entropy,
)

rows = st.lists(st.floats(-12, 12), min_size=2, max_size=6).map(
    lambda row: [row[0], *sorted(row[1:], reverse=True)]
)


def probabilities(row: list[float]) -> list[float]:
    powers = [math.exp(z) for z in row]
    return [power / sum(powers) for power in powers]


@given(rows)
def test_the_formulas_typed_again(row: list[float]) -> None:
    logits = np.array([row])
    p = probabilities(row)
    assert loss(logits) == pytest.approx([math.log(p[0])], abs=1e-9)
    assert confidence(logits) == pytest.approx([p[0]], abs=1e-12)
    assert entropy(logits) == pytest.approx([sum(q * math.log(q) for q in p)], abs=1e-9)
    # 1 - p as the sum of the others, so that the oracle does not cancel.
    rest = [sum(p[:i] + p[i + 1 :]) for i in range(len(p))]
    expected = rest[0] * math.log(p[0])
    expected += sum(q * math.log(r) for q, r in zip(p[1:], rest[1:], strict=True))
    assert modified_entropy(logits) == pytest.approx([expected], abs=1e-9)
    assert margin(logits) == pytest.approx([math.log(p[0]) - math.log(rest[0])], abs=1e-9)


@given(rows, st.floats(-1000, 1000))
def test_a_shift_of_all_logits_changes_nothing(row: list[float], shift: float) -> None:
    for statistic in STATISTICS.values():
        moved = statistic(np.array([row]) + shift)
        assert moved == pytest.approx(statistic(np.array([row])), abs=1e-9)


@given(rows, st.floats(0.01, 5))
def test_a_larger_true_logit_is_a_likelier_member(row: list[float], more: float) -> None:
    logits = np.array([row, [row[0] + more, *row[1:]]])
    for statistic in (loss, confidence, modified_entropy, margin):
        less, ahead = statistic(logits)
        assert ahead > less


def test_logits_of_a_thousand_are_no_trouble() -> None:
    sure, wrong = [1000.0, -1000.0, -1000.0], [-1000.0, 1000.0, -1000.0]
    logits = np.array([sure, wrong])
    two = math.log(2)
    assert margin(logits) == pytest.approx([2000 - two, -2000])
    assert loss(logits) == pytest.approx([0, -2000])
    assert confidence(logits).tolist() == [1, 0]
    assert entropy(logits) == pytest.approx([0, 0])
    # Sure of a wrong class: log p_y = -2000, and 1 - p of that class is two others' e^-2000.
    assert modified_entropy(logits) == pytest.approx([0, -2000 - (2000 - two)])


def test_a_loss_near_zero_is_not_rounded_away() -> None:
    # log p_y = -e^-50 where p_y itself is 1 in floating point.
    assert loss(np.array([[50.0, 0.0]])) == pytest.approx([-math.exp(-50)], rel=1e-12)


def test_equal_logits_are_the_least_certain() -> None:
    logits = np.zeros((1, 5))
    assert entropy(logits) == pytest.approx([-math.log(5)])
    assert confidence(logits) == pytest.approx([0.2])
    assert margin(logits) == pytest.approx([-math.log(4)])


def test_only_the_entropy_takes_a_sure_mistake_for_a_member() -> None:
    unsure, mistaken = [0.5, 0.0], [-9.0, 9.0]
    for name, statistic in STATISTICS.items():
        first, second = statistic(np.array([unsure, mistaken]))
        assert (second > first) == (name == "entropy")


def test_half_precision_logits_are_computed_in_double() -> None:
    logits = np.array([[3.0, 1.0, -2.0]])
    for statistic in STATISTICS.values():
        assert statistic(logits.astype(np.float16)).dtype == np.float64
        assert statistic(logits.astype(np.float16)) == pytest.approx(statistic(logits), rel=1e-12)


def test_one_class_is_always_certain_and_has_no_margin() -> None:
    logits = np.array([[3.0], [-1000.0]])
    assert confidence(logits).tolist() == [1, 1]
    for statistic in (loss, entropy, modified_entropy):
        assert statistic(logits) == pytest.approx([0, 0])
    with pytest.raises(ValueError, match="two classes"):
        margin(logits)
