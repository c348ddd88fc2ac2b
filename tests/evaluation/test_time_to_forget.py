from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.time_to_forget import recovery, rounds_to_reach, time_to_forget


def curve_of(fa: list[float], ra: list[float] | None = None) -> list[dict[str, Any]]:
    return [
        {"round": number, "fa": value, "ra": (ra or [1.0] * len(fa))[number]}
        for number, value in enumerate(fa)
    ]


def late(fa: list[float]) -> list[dict[str, Any]]:
    """Tracked from the second round on."""
    return curve_of([0.9, 0.8, *fa])[2:]


@pytest.mark.parametrize(
    ("fa", "expected"),
    [
        # There in two rounds: 60 points.
        ([0.9, 0.6, 0.3, 0.3], 30.0),
        # Within a point of the end after the first round; the way that it has gone counts.
        ([0.9, 0.31, 0.3, 0.3], 59.0),
        # A little more than a point away is not there.
        ([0.9, 0.312, 0.3], 30.0),
        # Passing the end's accuracy counts: it was there, whatever came next.
        ([0.9, 0.3, 0.1, 0.3], 60.0),
        ([0.9, 0.9, 0.9, 0.5], 40 / 3),
        # Ends where it began.
        ([0.9, 0.2, 0.9], 0.0),
        ([0.9, 0.895], 0.0),
        # Learned instead of forgetting.
        ([0.5, 0.7], -20.0),
    ],
)
def test_points_per_round_by_hand(fa: list[float], expected: float) -> None:
    assert time_to_forget(curve_of(fa)) == pytest.approx(expected)


def test_what_a_method_does_before_its_first_round_counts() -> None:
    """The learned model had 0.9; the method began with 0.4 and ended near it."""
    assert time_to_forget(curve_of([0.4, 0.7, 0.6]), 0.9) == pytest.approx(15.0)
    assert time_to_forget(curve_of([0.4, 0.41]), 0.9) == pytest.approx(49.0)
    assert time_to_forget(curve_of([0.1, 0.9]), 0.9) == 0.0


@pytest.mark.parametrize("curve", [[], curve_of([0.9]), late([0.5]), late([0.5, 0.4, 0.3])])
def test_a_curve_without_rounds_or_beginning_tells_nothing(curve: list[dict[str, Any]]) -> None:
    assert time_to_forget(curve) is None
    assert recovery(curve) is None


fractions = st.floats(0, 1)


@given(st.lists(fractions, min_size=2, max_size=8))
def test_it_is_the_definition(fa: list[float]) -> None:
    first = min(r for r, value in enumerate(fa) if abs(value - fa[-1]) <= 0.01 + 1e-9)
    expected = 100 * (fa[0] - fa[first]) / first if first else 0
    assert time_to_forget(curve_of(fa)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fa", "retrain", "expected"),
    [
        ([0.9, 0.6, 0.3], 0.6, 1),
        ([0.9, 0.6, 0.3], 0.595, 1),
        ([0.9, 0.6, 0.3], 0.61, 1),
        ([0.9, 0.6, 0.3], 0.62, None),
        ([0.9, 0.6, 0.3], 0.9, 0),
        # Jumping over it is not reaching it.
        ([0.9, 0.1], 0.5, None),
        ([], 0.5, None),
    ],
)
def test_the_first_round_near_retrain(
    fa: list[float], retrain: float, expected: int | None
) -> None:
    assert rounds_to_reach(curve_of(fa), retrain) == expected


def test_a_late_curve_still_tells_when_it_was_near() -> None:
    assert rounds_to_reach(late([0.5, 0.4, 0.3]), 0.4) == 3


@pytest.mark.parametrize(
    ("ra", "expected"),
    [
        # Down to 60 % in round 1, back at 90 % two rounds later.
        ([1.0, 0.6, 0.8, 0.9], 15.0),
        ([1.0, 0.9, 0.8], 0.0),
        ([0.5, 0.7, 0.9], 20.0),
        ([0.8, 0.8], 0.0),
    ],
)
def test_recovery_by_hand(ra: list[float], expected: float) -> None:
    assert recovery(curve_of([0.5] * len(ra), ra)) == pytest.approx(expected)


@given(st.lists(fractions, min_size=2, max_size=8))
def test_recovery_is_never_negative(ra: list[float]) -> None:
    found = recovery(curve_of([0.5] * len(ra), ra))
    assert found is not None
    assert 0 <= found <= 100
