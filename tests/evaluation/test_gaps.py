from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.gaps import best_stop, distance, gaps

fractions = st.floats(0, 1)
costs = st.integers(0, 10**12)
figures = st.fixed_dictionaries(
    dict.fromkeys(("fa", "ra", "ta", "mia_auc"), fractions) | {"bytes": costs, "flops": costs}
)
points = st.fixed_dictionaries(dict.fromkeys(("fa", "ra", "ta"), fractions))
Figures = dict[str, Any]


@given(figures, figures)
def test_gaps_are_points_and_costs_are_shares(result: Figures, retrain: Figures) -> None:
    expected = {
        "fa_gap": (result["fa"] - retrain["fa"]) * 100,
        "ra_gap": (result["ra"] - retrain["ra"]) * 100,
        "ta_gap": (result["ta"] - retrain["ta"]) * 100,
        "mia_auc_gap": result["mia_auc"] - retrain["mia_auc"],
    }
    if retrain["bytes"] > 0:
        expected["bytes_share"] = result["bytes"] / retrain["bytes"]
    if retrain["flops"] > 0:
        expected["flops_share"] = result["flops"] / retrain["flops"]
    assert gaps(result, retrain) == pytest.approx(expected)


@given(points, figures)
def test_a_point_of_a_curve_has_only_its_own_gaps(point: Figures, retrain: Figures) -> None:
    assert set(gaps(point, retrain)) == {"fa_gap", "ra_gap", "ta_gap"}


@given(figures)
def test_retrain_is_not_away_from_itself(retrain: Figures) -> None:
    told = gaps(retrain, retrain)
    assert {value for name, value in told.items() if name.endswith("_gap")} == {0}
    assert {value for name, value in told.items() if name.endswith("_share")} <= {1}
    assert distance(retrain, retrain) == 0


@pytest.mark.parametrize(
    ("fa", "ra", "ta", "expected"),
    [
        (0.5, 0.9, 0.8, 0),
        (0.2, 0.9, 0.8, 10),
        (0.8, 0.9, 0.8, 10),
        (0.5, 0.6, 0.8, 10),
        (0.5, 0.9, 0.5, 10),
        (0.5, 1.0, 1.0, 0),
        # Being better on one side does not make up for the other.
        (0.4, 0.8, 1.0, 20 / 3),
    ],
)
def test_distance_by_hand(fa: float, ra: float, ta: float, expected: float) -> None:
    retrain = {"fa": 0.5, "ra": 0.9, "ta": 0.8, "mia_auc": 0.5}
    assert distance({"fa": fa, "ra": ra, "ta": ta}, retrain) == pytest.approx(expected)


@given(points, points)
def test_distance_is_no_less_than_nothing(point: Figures, retrain: Figures) -> None:
    lost = [
        abs(point["fa"] - retrain["fa"]),
        max(retrain["ra"] - point["ra"], 0),
        max(retrain["ta"] - point["ta"], 0),
    ]
    assert distance(point, retrain) == pytest.approx(100 * sum(lost) / 3)
    assert distance(point, retrain) >= 0


@given(st.lists(points, min_size=1, max_size=6), points)
def test_no_round_is_nearer_than_the_best_stop(curve: list[Figures], retrain: Figures) -> None:
    numbered = [{"round": number, **point} for number, point in enumerate(curve)]
    best = best_stop(numbered, retrain)
    assert best in numbered
    assert distance(best, retrain) == min(distance(point, retrain) for point in curve)


def test_the_best_stop_is_the_first_of_equals() -> None:
    retrain = {"fa": 0.5, "ra": 0.5, "ta": 0.5}
    # Exact in binary: 0.25 and 0.75 are equally far.
    curve = [{"round": n, **retrain, "fa": fa} for n, fa in enumerate([1.0, 0.75, 0.25])]
    best = best_stop(curve, retrain)
    assert best is not None
    assert best["round"] == 1


def test_a_curve_without_rounds_has_no_best_stop() -> None:
    assert best_stop([], {"fa": 0.5, "ra": 0.5, "ta": 0.5}) is None
