import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.membership import auc_interval, loss_auc

# Few values, so that ties are common.
losses = st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0, 1e9]), min_size=1, max_size=12)


@given(losses, losses)
def test_it_counts_pairs(members: list[float], others: list[float]) -> None:
    pairs = [(a < b) + 0.5 * (a == b) for a in members for b in others]
    assert loss_auc(members, others) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert loss_auc(others, members) == pytest.approx(1 - sum(pairs) / len(pairs), abs=1e-12)


def test_extremes() -> None:
    assert loss_auc([0.1, 0.2], [0.3, 0.4, 0.5]) == 1
    assert loss_auc([9.0], [0.3, 0.4]) == 0
    assert loss_auc([1.0] * 5, [1.0] * 3) == 0.5


@pytest.mark.parametrize(("members", "others"), [([], [1.0]), ([1.0], []), ([], [])])
def test_an_empty_group_cannot_be_attacked(members: list[float], others: list[float]) -> None:
    with pytest.raises(ValueError, match="empty"):
        loss_auc(members, others)


counts = st.integers(1, 500)


@given(st.floats(0, 1), counts, counts, st.floats(0.1, 4))
def test_the_interval_is_hanleys_and_mcneils(auc: float, m: int, n: int, z: float) -> None:
    # Two members against one other, and one member against two others.
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    square = auc * (1 - auc) + (m - 1) * (q1 - auc * auc) + (n - 1) * (q2 - auc * auc)
    error = math.sqrt(max(square, 0.0) / (m * n))
    low, high = auc_interval(auc, m, n, z)
    assert low == pytest.approx(max(0.0, auc - z * error), abs=1e-9)
    assert high == pytest.approx(min(1.0, auc + z * error), abs=1e-9)


def test_the_interval_by_hand() -> None:
    # A = 1/2: q1 = q2 = 1/3, so s^2 = (1/4 + (20 - 1 + 30 - 1) / 12) / 600.
    low, high = auc_interval(0.5, 20, 30)
    error = math.sqrt((3 + 48) / 12 / 600)
    assert (low, high) == pytest.approx((0.5 - 1.96 * error, 0.5 + 1.96 * error))


@given(st.floats(0, 1), counts, counts)
def test_the_interval_holds_the_auc_and_stays_possible(auc: float, m: int, n: int) -> None:
    low, high = auc_interval(auc, m, n)
    assert 0 <= low <= auc <= high <= 1


@given(st.floats(0.05, 0.95), counts, counts, st.integers(2, 20))
def test_more_samples_make_it_narrower(auc: float, m: int, n: int, times: int) -> None:
    # So few standard errors that nothing is cut off at 0 and 1.
    few = auc_interval(auc, m, n, z=0.1)
    many = auc_interval(auc, times * m, times * n, z=0.1)
    assert many[1] - many[0] < few[1] - few[0]


@given(st.integers(2, 500), counts)
def test_chance_is_treated_alike_from_both_sides(m: int, n: int) -> None:
    low, high = auc_interval(0.5, m, n)
    assert low == pytest.approx(1 - high)
    assert (low, high) == pytest.approx(auc_interval(0.5, n, m))


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_it_covers_the_truth_about_19_times_in_20(shift: float) -> None:
    # Losses of members are N(0, 1), those of others N(shift, 1): AUC = Phi(shift / sqrt(2)).
    truth = 0.5 * (1 + math.erf(shift / 2))
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        auc = loss_auc(rng.normal(0, 1, 60).tolist(), rng.normal(shift, 1, 40).tolist())
        low, high = auc_interval(auc, 60, 40)
        held += low <= truth <= high
    assert 0.92 * 400 <= held <= 0.98 * 400
