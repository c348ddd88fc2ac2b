from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.gaps import best_stop, distance, gaps, speeds

fractions = st.floats(0, 1)
costs = st.integers(0, 10**12)
PERCENT = ("fa", "ra", "ta", "mia_accuracy", "forget_test", "retain_test")
COSTS = ("bytes", "flops", "wall_seconds")
figures = st.fixed_dictionaries(
    dict.fromkeys((*PERCENT, "mia_auc"), fractions) | dict.fromkeys(COSTS, costs)
)
points = st.fixed_dictionaries(dict.fromkeys(("fa", "ra", "ta"), fractions))
Figures = dict[str, Any]


@given(figures, figures)
def test_gaps_are_points_and_costs_are_shares(result: Figures, retrain: Figures) -> None:
    expected = {f"{key}_gap": (result[key] - retrain[key]) * 100 for key in PERCENT}
    expected["mia_auc_gap"] = result["mia_auc"] - retrain["mia_auc"]
    for key in COSTS:
        if retrain[key] > 0:
            expected[f"{key}_share"] = result[key] / retrain[key]
    assert gaps(result, retrain) == pytest.approx(expected)


@given(points, figures)
def test_a_point_of_a_curve_has_only_its_own_gaps(point: Figures, retrain: Figures) -> None:
    assert set(gaps(point, retrain)) == {"fa_gap", "ra_gap", "ta_gap"}


@given(figures, figures, st.sampled_from([*PERCENT, "mia_auc", *COSTS]), st.booleans())
def test_what_one_of_them_lacks_has_no_gap(
    result: Figures, retrain: Figures, key: str, mine: bool
) -> None:
    (result if mine else retrain)[key] = None
    without = ({k: v for k, v in told.items() if k != key} for told in (result, retrain))
    assert gaps(result, retrain) == gaps(*without)
    assert not {f"{key}_gap", f"{key}_share"} & set(gaps(result, retrain))


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


@pytest.mark.parametrize(
    ("mia", "of_retrain", "expected"),
    [
        # FA is 30 points off, RA 10 short; TA is better, which is no loss.
        (0.5, 0.5, 40 / 4),
        (0.62, 0.5, 52 / 4),
        # An attack that sees less than it does in Retrain is off, too.
        (0.5, 0.62, 52 / 4),
        # Without an attack on both, the mean is over the others.
        (None, 0.5, 40 / 3),
        (0.5, None, 40 / 3),
        (None, None, 40 / 3),
    ],
)
def test_the_attacks_balanced_accuracy_is_part_of_the_headline(
    mia: float | None, of_retrain: float | None, expected: float
) -> None:
    retrain = {"fa": 0.5, "ra": 0.9, "ta": 0.8, "mia_accuracy": of_retrain, "mia_auc": 0.1}
    result = {"fa": 0.8, "ra": 0.8, "ta": 0.9, "mia_accuracy": mia, "mia_auc": 0.9}
    assert distance(result, retrain) == pytest.approx(expected)


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


def test_speeds_are_read_off_the_curve() -> None:
    curve = [
        {"round": n, "fa": fa, "ra": ra}
        for n, (fa, ra) in enumerate([(0.9, 1.0), (0.5, 0.7), (0.3, 0.9)])
    ]
    assert speeds(curve, 0.5) == pytest.approx(
        {"t2f": 30.0, "recovery": 20.0, "rounds_to_retrain": 1}
    )
    # Without Retrain nobody can say when its accuracy was reached.
    assert speeds(curve, None) == pytest.approx({"t2f": 30.0, "recovery": 20.0})
    assert speeds([], 0.5) == {"t2f": None, "recovery": None, "rounds_to_retrain": None}
