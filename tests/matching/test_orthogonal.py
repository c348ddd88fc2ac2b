import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foul.matching.orthogonal import orthogonal_weights, recovery_weights

Array = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)


def updates(seed: int, clients: int, dimension: int) -> Array:
    """Updates that have something in common, of lengths that differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(clients, dimension)) + rng.normal(size=dimension)
    return rows * 10 ** rng.uniform(-3, 1, size=(clients, 1))


def direction(rows: Array, forget: NDArray[np.bool_]) -> Array:
    return orthogonal_weights(rows @ rows.T, forget) @ rows


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def last(count: int, clients: int) -> NDArray[np.bool_]:
    return np.arange(clients) >= clients - count


# The step of forgetting


def test_what_remains_beside_two_axes_is_the_third() -> None:
    rows = np.array([[1, 0, 0], [0, 1, 0], [1, 2, 2]], dtype=np.float64)
    np.testing.assert_allclose(direction(rows, last(1, 3)), [0, 0, 3], atol=1e-12)


@given(seeds, st.integers(1, 6), st.integers(1, 3))
def test_the_step_is_orthogonal_to_every_retain_update_and_as_long_as_the_mean(
    seed: int, retain: int, forget: int
) -> None:
    rows = updates(seed, retain + forget, 40)
    mask = last(forget, len(rows))
    step, mean = direction(rows, mask), rows[mask].mean(0)
    for row in rows[~mask]:
        assert abs(cosine(step, row)) < 1e-8
    assert step @ mean > 0
    assert np.linalg.norm(step) == pytest.approx(np.linalg.norm(mean))
    # The formula, typed again, in the space of the updates.
    matrix = rows[~mask] / np.linalg.norm(rows[~mask], axis=1, keepdims=True)
    rest = mean - matrix.T @ np.linalg.pinv(matrix @ matrix.T) @ matrix @ mean
    assert cosine(step, rest) == pytest.approx(1, abs=1e-8)


@given(seeds, st.integers(1, 5))
def test_lengths_of_retain_updates_do_not_matter(seed: int, retain: int) -> None:
    rows = updates(seed, retain + 1, 30)
    scaled = rows * np.append(np.logspace(-6, 3, retain), 1)[:, None]
    mask = last(1, len(rows))
    one, other = direction(rows, mask), direction(scaled, mask)
    np.testing.assert_allclose(one, other, atol=1e-7 * float(np.linalg.norm(one)))


def test_repeated_and_empty_retain_updates_change_nothing() -> None:
    rows = updates(0, 4, 30)
    more = np.vstack([rows[:3], rows[0], np.zeros(30), rows[3]])
    one, other = direction(rows, last(1, 4)), direction(more, last(1, 6))
    np.testing.assert_allclose(one, other, atol=1e-8 * float(np.linalg.norm(one)))


@pytest.mark.parametrize("seed", range(5))
def test_a_mean_that_the_retain_updates_span_leaves_nothing(seed: int) -> None:
    rows = updates(seed, 3, 30)
    inside = np.vstack([rows, [0.3, -1, 2] @ rows])
    assert orthogonal_weights(inside @ inside.T, last(1, 4)).tolist() == [0, 0, 0, 0]


def test_without_retain_updates_the_step_is_the_mean() -> None:
    rows = updates(0, 3, 30)
    np.testing.assert_allclose(direction(rows, last(3, 3)), rows.mean(0))


# The step of recovery


@given(seeds, st.integers(1, 6), st.booleans())
def test_recovery_never_leads_back_and_keeps_lengths(seed: int, clients: int, always: bool) -> None:
    rows = updates(seed, clients + 1, 40)
    away = rows[-1]
    expected = np.zeros(40)
    for update in rows[:-1]:
        if always or update @ away < 0:
            rest = update - (update @ away) / (away @ away) * away
            update = rest * np.linalg.norm(update) / np.linalg.norm(rest)
        expected += update / clients
    step = recovery_weights(rows @ rows.T, always) @ rows
    np.testing.assert_allclose(step, expected, atol=1e-8 * np.linalg.norm(rows[:-1], axis=1).max())
    assert step @ away > -1e-8 * np.linalg.norm(step) * np.linalg.norm(away)
    if always:
        assert abs(cosine(step, away)) < 1e-6


def test_updates_that_lead_away_are_left_alone_unless_always() -> None:
    rows = np.array([[3, 4], [-3, 4], [1, 0]], dtype=np.float64)
    gram = rows @ rows.T
    # (3, 4) stays; (-3, 4) becomes (0, 5).
    np.testing.assert_allclose(recovery_weights(gram) @ rows, [1.5, 4.5])
    np.testing.assert_allclose(recovery_weights(gram, always=True) @ rows, [0, 5])


def test_at_the_learned_model_recovery_is_the_plain_mean() -> None:
    rows = np.vstack([updates(0, 4, 30), np.zeros(30)])
    np.testing.assert_allclose(recovery_weights(rows @ rows.T, True), [0.25] * 4 + [0])


def test_an_update_that_leads_straight_back_is_left_out() -> None:
    rows = np.array([[-2, 0], [0, 1], [1, 0]], dtype=np.float64)
    np.testing.assert_allclose(recovery_weights(rows @ rows.T) @ rows, [0, 0.5])
