import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.radius import POINTS, Trial, accuracies, aim_for, choose_radius, is_flat

shares = st.integers(0, 128).map(lambda hits: hits / 128)
tried = st.lists(shares, min_size=len(POINTS), max_size=len(POINTS))
falling = tried.map(lambda values: sorted(values, reverse=True))


def between(values: list[float], place: float) -> float:
    """The broken line through the points at this place."""
    for i in range(1, len(POINTS)):
        if place <= POINTS[i]:
            part = (place - POINTS[i - 1]) / (POINTS[i] - POINTS[i - 1])
            return values[i - 1] + part * (values[i] - values[i - 1])
    raise AssertionError(place)


@given(falling, shares)
def test_the_accuracy_at_the_chosen_radius_is_the_aim(values: list[float], aim: float) -> None:
    radius, expected = choose_radius(POINTS, values, aim)
    assert POINTS[0] <= radius <= POINTS[-1]
    assert between(values, radius) == pytest.approx(expected)
    # Nothing lower than the first and nothing beyond the last point can be had.
    assert expected == pytest.approx(max(values[-1], min(values[0], aim)))


@given(tried, shares)
def test_it_is_the_smallest_radius_that_does(values: list[float], aim: float) -> None:
    """However the accuracies wander."""
    radius, expected = choose_radius(POINTS, values, aim)
    assert POINTS[0] <= radius <= POINTS[-1]
    assert between(values, radius) == pytest.approx(expected)
    nearer = [v for p, v in zip(POINTS, values, strict=True) if p < radius]
    if min(values) <= aim:
        assert expected <= aim
        assert all(value > aim for value in nearer)
    else:
        assert expected == min(values)
        assert all(value > expected for value in nearer)


@given(tried, shares)
def test_what_is_low_enough_already_needs_no_radius(values: list[float], aim: float) -> None:
    radius, expected = choose_radius(POINTS, [min(values[0], aim), *values[1:]], aim)
    assert (radius, expected) == (0.0, min(values[0], aim))


@pytest.mark.parametrize(
    ("values", "aim", "radius", "expected"),
    [
        ([1.0, 0.8, 0.4, 0.2, 0.1, 0.0], 0.6, 0.09375, 0.6),
        ([0.9, 0.7, 0.7, 0.7, 0.7, 0.7], 0.5, 0.0625, 0.7),
        ([0.9, 0.9, 0.8, 0.6, 0.7, 0.6], 0.5, 0.25, 0.6),
        ([0.3, 0.2, 0.1, 0.0, 0.0, 0.0], 0.5, 0.0, 0.3),
        ([0.8, 0.9, 0.8, 0.7, 0.6, 0.5], 0.5, 1.0, 0.5),
    ],
)
def test_radii_worked_out_by_hand(
    values: list[float], aim: float, radius: float, expected: float
) -> None:
    assert choose_radius(POINTS, values, aim) == pytest.approx((radius, expected))


@pytest.mark.parametrize(
    ("values", "radius"),
    [
        ([1.0] * 6, 1.0),
        ([1.0, 0.9, 0.8, 0.9, 0.8, 0.9], 0.5),
        # Low enough somewhere: as ever.
        ([0.9, 0.8, 0.4, 0.2, 0.1, 0.0], 0.109375),
    ],
)
def test_where_the_loss_is_flat_the_farthest_of_equal_points_is_taken(
    values: list[float], radius: float
) -> None:
    assert choose_radius(POINTS, values, 0.5, flat=True)[0] == pytest.approx(radius)


def test_the_points_go_from_none_to_all_of_kappa() -> None:
    assert POINTS[0] == 0
    assert POINTS[-1] == 1
    assert list(POINTS) == sorted(set(POINTS))


def test_the_aim_falls_in_equal_steps() -> None:
    aims = [aim_for(0.9, 0.5, number, 4) for number in (1, 2, 3, 4, 5, 99)]
    assert aims == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.5, 0.5])
    assert aim_for(0.9, 0.5, 1, 0) == 0.5


@given(shares, shares, st.integers(1, 50), st.integers(0, 40))
def test_the_aim_stays_between_where_it_was_and_the_target(
    before: float, target: float, number: int, ramp: int
) -> None:
    aim = aim_for(before, target, number, ramp)
    assert min(before, target) <= aim + 1e-12
    assert aim - 1e-12 <= max(before, target)
    if number >= ramp:
        assert aim == target


@pytest.mark.parametrize(
    ("accuracies", "aim", "flat"),
    [
        ([1.0, 1.0, 1.0], 0.8, True),
        ([1.0, 0.995, 1.0], 0.8, True),
        ([1.0, 0.9, 1.0], 0.8, False),
        ([0.7, 0.7, 0.7], 0.8, False),
    ],
)
def test_a_loss_is_flat_where_no_radius_helps(
    accuracies: list[float], aim: float, flat: bool
) -> None:
    assert is_flat(accuracies, aim, 0.01) is flat
    assert not is_flat(accuracies, aim, 0.0)


@st.composite
def trials(draw: st.DrawFn, all_of_them: bool = False) -> Trial:
    samples = draw(st.integers(1, 50))
    hits = st.integers(0, samples)
    tried = [
        Counts(count, samples)
        for count in draw(st.lists(hits, min_size=len(POINTS), max_size=len(POINTS)))
    ]
    if all_of_them:
        return Trial(tried, tried[0])
    whole = draw(st.integers(samples, 500))
    return Trial(tried, Counts(draw(st.integers(0, whole)), whole))


@given(st.lists(trials(all_of_them=True), min_size=1, max_size=4))
def test_accuracies_of_who_tried_with_all_samples_are_counted(told: list[Trial]) -> None:
    samples = sum(trial.centre.samples for trial in told)
    for place, share in enumerate(accuracies(told)):
        # The very bits: what was measured before stays what it was.
        assert share == sum(trial.tried[place].correct for trial in told) / samples


@given(st.lists(trials(), min_size=1, max_size=4))
def test_accuracies_begin_where_all_samples_are_and_move_with_those_tried(
    told: list[Trial],
) -> None:
    found = accuracies(told)
    samples = sum(trial.centre.samples for trial in told)
    assert found[0] == pytest.approx(sum(trial.centre.correct for trial in told) / samples)
    for place, share in enumerate(found):
        moved = sum(
            trial.centre.samples * (trial.tried[place].share - trial.tried[0].share)
            for trial in told
        )
        assert share == pytest.approx(min(1.0, max(0.0, found[0] + moved / samples)))


def test_accuracies_worked_out_by_hand() -> None:
    """Of 10 tried samples 8 and then 6 are right, of all 100 at first 70: then 50 are."""
    trial = Trial([Counts(8, 10), Counts(6, 10)], Counts(70, 100))
    assert accuracies([trial]) == pytest.approx([0.7, 0.5])
    # A client of 300 samples counts three times as much.
    other = Trial([Counts(10, 10), Counts(0, 10)], Counts(300, 300))
    assert accuracies([trial, other]) == pytest.approx([0.925, 0.125])
