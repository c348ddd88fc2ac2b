from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matching_problems import Case, Oracle, cases

from foul.matching import Matching, MatchingOptions, match
from foul.matching.problem import Normalise, RadiusOf

quick = settings(deadline=None, max_examples=150)


def update(case: Case, matching: Matching) -> np.ndarray:
    direction: np.ndarray = matching.weights @ case.deltas
    return direction


def solved(case: Case) -> Matching:
    return match(case.gram, case.forget, case.options)


@quick
@given(cases())
def test_result_is_what_it_says(case: Case) -> None:
    matching, oracle = solved(case), Oracle.of(case)
    assume(matching.flag != "no_anchor")
    scale, x = oracle.scale, update(case, matching)
    assert matching.objective == pytest.approx(
        oracle.objective(matching.simplex_weights), abs=1e-6 * scale
    )
    assert matching.relative_gap == pytest.approx(matching.gap / scale, rel=1e-6)
    assert matching.relative_gap <= 1e-6
    assert matching.anchor_norm == pytest.approx(np.linalg.norm(oracle.anchor), abs=1e-6)
    assert matching.update_norm == pytest.approx(np.linalg.norm(x), abs=1e-6)
    norms = np.linalg.norm(x) * np.linalg.norm(case.deltas, axis=1)
    np.testing.assert_allclose(matching.cosines * norms, case.deltas @ x, atol=1e-6 * scale)
    if case.options.rescale:
        x = x * (1 + case.options.kappa**2)
    length = oracle.step if matching.flag == "ok" else 0.0
    assert np.linalg.norm(x - oracle.anchor) == pytest.approx(length, abs=1e-3 * oracle.reference)
    if matching.flag == "ok" and case.options.radius == "kappa":
        # The gap is a statement about the update itself.
        assert oracle.objective(matching.simplex_weights) - oracle.primal(x) <= 1e-3 * scale


@quick
@given(cases(max_clients=8, max_dimension=6))
def test_agrees_with_the_primal_problem_solved_directly(case: Case) -> None:
    matching, oracle = solved(case), Oracle.of(case)
    assume(matching.flag != "no_anchor")
    best = oracle.best_primal()
    assert matching.objective == pytest.approx(best, abs=1e-6 * oracle.scale)
    if matching.primal is not None:
        assert matching.primal <= best + 1e-6 * oracle.scale
    else:
        assert case.options.radius == "sqrt_kappa"


@quick
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_clients_does_not_matter(case: Case, random: Random) -> None:
    order = list(range(len(case.deltas)))
    random.shuffle(order)
    turned = replace(case, deltas=case.deltas[order], forget=case.forget[order])
    first, second = solved(case), solved(turned)
    assume(first.flag == second.flag == "ok")
    # Dw is unique where it is not 0; how well it is determined depends on |Dw|.
    tolerance = 1e-3 * Oracle.of(case).reference + 1e-6
    assert np.linalg.norm(update(case, first) - update(turned, second)) <= tolerance


@quick
@given(cases(), st.sampled_from([1e-12, 1e-3, 1e5, 1e12]))
def test_scaled_deltas_give_the_same_weights(case: Case, factor: float) -> None:
    first, second = solved(case), match(case.gram * factor**2, case.forget, case.options)
    assume(first.flag == second.flag == "ok")
    difference = (first.weights - second.weights) @ case.deltas
    assert np.linalg.norm(difference) <= 1e-3 * Oracle.of(case).reference + 1e-6
    assert second.objective == pytest.approx(
        first.objective * factor**2, abs=1e-6 * factor**2 * Oracle.of(case).scale
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_without_forget_clients_it_is_cagrad(clients: int, kappa: float, seed: int) -> None:
    pytest.importorskip("cvxpy", reason="torchjd needs it for CAGrad: pip install torchjd[cagrad]")
    from torchjd.aggregation import CAGrad

    rng = np.random.default_rng(seed)
    deltas = rng.normal(size=(clients, 3 * clients)) + rng.normal(size=3 * clients)
    matching = match(deltas @ deltas.T, np.zeros(clients, bool), MatchingOptions(kappa=kappa))
    expected = CAGrad(c=kappa)(torch.from_numpy(deltas)).numpy()
    error = np.linalg.norm(matching.weights @ deltas - expected)
    assert error <= 1e-2 * np.linalg.norm(expected)


RNG = np.random.default_rng(0)
DELTAS = RNG.normal(size=(6, 20)) + RNG.normal(size=20)
FORGET = np.array([False] * 4 + [True] * 2)


def test_kappa_zero_is_the_anchor() -> None:
    matching = match(DELTAS @ DELTAS.T, FORGET, MatchingOptions(kappa=0.0))
    np.testing.assert_allclose(matching.weights @ DELTAS, DELTAS[:4].mean(axis=0))
    assert (matching.flag, matching.gap) == ("ok", 0.0)
    slopes = DELTAS @ DELTAS[:4].mean(axis=0)
    assert matching.objective == pytest.approx(slopes[:4].min() - slopes[4:].max())


def test_anchor_weights_are_shares_of_retain_clients() -> None:
    counts = np.array([1.0, 2.0, 3.0, 4.0, 50.0, 50.0])
    options = MatchingOptions(kappa=0.0)
    retain = match(DELTAS @ DELTAS.T, FORGET, options, counts)
    np.testing.assert_allclose(retain.weights, [0.1, 0.2, 0.3, 0.4, 0, 0])
    everyone = match(DELTAS @ DELTAS.T, FORGET, replace(options, anchor="all"), counts)
    np.testing.assert_allclose(everyone.weights, counts / 110)


def test_no_direction_keeps_the_anchor() -> None:
    # A forget client that repeats a retain client: minus it, the two cancel, and with kappa >= 1
    # nothing does better than 0.
    deltas = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    matching = match(deltas @ deltas.T, [False, False, True], MatchingOptions(kappa=1.5))
    assert matching.flag == "no_direction"
    np.testing.assert_allclose(matching.weights, [0.5, 0.5, 0.0])
    assert matching.objective == pytest.approx(0, abs=1e-7)
    assert matching.relative_gap <= 1e-6


@pytest.mark.parametrize("rescale", [False, True])
def test_no_anchor_stays(rescale: bool) -> None:
    deltas = np.array([[1.0, 2.0], [-1.0, -2.0], [0.3, 0.1]])
    options = MatchingOptions(rescale=rescale)
    matching = match(deltas @ deltas.T, [False, False, True], options)
    assert matching.flag == "no_anchor"
    assert not matching.weights.any()
    assert not matching.cosines.any()
    assert (matching.update_norm, matching.gap, matching.relative_gap) == (0.0, 0.0, 0.0)


def test_no_anchor_but_a_radius_of_its_own_still_moves() -> None:
    deltas = np.array([[1.0, 2.0], [-1.0, -2.0], [0.3, 0.1]])
    options = MatchingOptions(radius_of="mean_norm")
    matching = match(deltas @ deltas.T, [False, False, True], options)
    assert matching.flag == "ok"
    assert matching.update_norm == pytest.approx(0.5 * 5**0.5, rel=1e-6)


@pytest.mark.parametrize("normalise", ["none", "retain_mean", "retain_least"])
def test_retain_clients_that_send_nothing_do_not_stop_forgetting(normalise: Normalise) -> None:
    deltas = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    gram, forget = deltas @ deltas.T, [False, False, True]
    chosen = MatchingOptions(radius_of="larger_mean", normalise=normalise, forget="bounded")
    matching = match(gram, forget, chosen)
    assert matching.update_norm == pytest.approx(0.5 * 5)
    assert matching.cosines[2] == pytest.approx(1)
    stuck = match(gram, forget, replace(chosen, radius_of="mean_norm"))
    assert (stuck.flag, stuck.update_norm) == ("no_anchor", 0.0)


@pytest.mark.parametrize("radius_of", ["anchor", "mean_norm", "larger_mean"])
def test_all_deltas_zero(radius_of: RadiusOf) -> None:
    for options in (MatchingOptions(), MatchingOptions(radius_of=radius_of)):
        matching = match(np.zeros((3, 3)), [False, False, True], options)
        assert (matching.flag, matching.update_norm) == ("no_anchor", 0.0)


def test_one_client() -> None:
    matching = match([[4.0]], [False])
    np.testing.assert_allclose(matching.weights, [1.5])
    assert matching.objective == pytest.approx(6)
    assert matching.cosines == pytest.approx([1])


def test_a_zero_delta_among_others() -> None:
    deltas = DELTAS.copy()
    deltas[1] = deltas[5] = 0
    for normalise in ("none", "retain_mean", "retain_least"):
        options = MatchingOptions(normalise=normalise)
        matching = match(deltas @ deltas.T, FORGET, options)
        assert np.isfinite(matching.weights).all()
        assert matching.relative_gap <= 1e-6
        assert matching.cosines[1] == 0


def test_repeated_clients_share_a_weight_and_leave_the_update() -> None:
    counts = [1, 1, 1, 1, 1, 3]
    repeated = np.repeat(DELTAS, counts, axis=0)
    first = match(DELTAS @ DELTAS.T, FORGET)
    second = match(repeated @ repeated.T, np.repeat(FORGET, counts))
    np.testing.assert_allclose(first.weights @ DELTAS, second.weights @ repeated, atol=1e-6)


def test_sqrt_kappa_changes_the_minimiser_and_keeps_the_step() -> None:
    printed = match(DELTAS @ DELTAS.T, FORGET, MatchingOptions(radius="sqrt_kappa"))
    assert printed.primal is None
    g = DELTAS[:4].mean(axis=0)
    distance = np.linalg.norm(printed.weights @ DELTAS - g)
    assert distance == pytest.approx(0.5 * np.linalg.norm(g))
    assert printed.relative_gap <= 1e-8


def test_update_keeps_a_positive_product_with_the_anchor_below_kappa_1() -> None:
    matching = match(DELTAS @ DELTAS.T, FORGET, MatchingOptions(kappa=0.99))
    assert (matching.weights @ DELTAS) @ DELTAS[:4].mean(axis=0) > 0


@pytest.mark.parametrize(
    ("gram", "forget", "weights", "message"),
    [
        (np.eye(3), [True] * 3, None, "every client"),
        (np.eye(3), [True] * 2, None, "one bool for each of the 3"),
        (np.eye(3), [0, 1, 0], None, "one bool for each of the 3"),
        (np.ones((3, 2)), [False] * 3, None, "shape"),
        (np.zeros((0, 0)), [], None, "shape"),
        (np.diag([1.0, np.nan, 1.0]), [False] * 3, None, r"not finite \(clients \[1\]\)"),
        (np.diag([1.0, np.inf, 1.0]), [False] * 3, None, r"not finite \(clients \[1\]\)"),
        (np.eye(3), [False] * 3, [1, -1, 1], "anchor_weights"),
        (np.eye(3), [False] * 3, [1, 1], "anchor_weights"),
        (np.eye(3), [False, False, True], [0, 0, 1], "anchor_weights"),
    ],
)
def test_bad_input(
    gram: np.ndarray, forget: list[bool], weights: list[float] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        match(gram, forget, anchor_weights=weights)
