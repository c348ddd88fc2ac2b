from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase, engine_of, gone, repainted
from hypothesis import given
from hypothesis import strategies as st
from method_rounds import asked, copied, finish, learned_by
from scipy.stats import norm as normal

from foul.config.schema import FederationConfig
from foul.data import ClientData
from foul.federation.federation import QuorumError
from foul.learning.optimisers import quantised
from foul.learning.rounds import rate_scale
from foul.unlearning import Case, Method
from foul.unlearning.ffmu import (
    Ffmu,
    FfmuAdapted,
    FfmuAdaptedOptions,
    QuantisedOptions,
    certified_radius,
)

NEVER = 0.430727
"""Below this share of sigma, tau lets no weight stay where it is."""
gradients = st.floats(-5, 5)
positive = st.floats(0.01, 2)


def ffmu(**options: Any) -> Ffmu:
    return Ffmu(QuantisedOptions.model_validate({"batch_size": 16} | options))


def adapted(**options: Any) -> FfmuAdapted:
    return FfmuAdapted(FfmuAdaptedOptions.model_validate({"batch_size": 16} | options))


def q(gradient: float, tau: float, sigma: float) -> float:
    return float(quantised(torch.tensor([gradient], dtype=torch.float64), tau, sigma))


# The certificate


@given(gradients, positive, positive)
def test_the_radius_is_the_formula(gradient: float, tau: float, sigma: float) -> None:
    up, down = normal.sf((tau - gradient) / sigma), normal.cdf((-tau - gradient) / sigma)
    second, largest = sorted([up, down, 1 - up - down])[1:]
    if second > 1e-6:
        expected = sigma / 2 * (normal.ppf(largest) - normal.ppf(second))
        assert certified_radius(gradient, tau, sigma) == pytest.approx(expected, abs=1e-6)


@given(gradients, positive, positive, st.floats(-0.999, 0.999))
def test_a_gradient_that_moves_less_takes_the_same_step(
    gradient: float, tau: float, sigma: float, share: float
) -> None:
    radius = certified_radius(gradient, tau, sigma)
    if radius > 1e-6:
        assert q(gradient + share * radius, tau, sigma) == q(gradient, tau, sigma)


@given(gradients, positive, positive)
def test_the_radius_has_no_sign_no_nan_and_a_bound(
    gradient: float, tau: float, sigma: float
) -> None:
    radius = certified_radius(gradient, tau, sigma)
    assert 0 <= radius < 38 * sigma
    assert radius == certified_radius(-gradient, tau, sigma)
    assert 0 <= certified_radius(1e9, tau, sigma) < 38 * sigma


@given(gradients, positive, positive)
def test_no_weight_that_stays_has_a_larger_radius_than_one_without_a_gradient(
    gradient: float, tau: float, sigma: float
) -> None:
    if q(gradient, tau, sigma) == 0:
        limit = certified_radius(0, tau, sigma)
        assert certified_radius(gradient, tau, sigma) <= limit + 1e-9


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_a_low_threshold_certifies_nothing(sigma: float) -> None:
    """Every weight moves, and those with hardly a gradient could move either way."""
    assert certified_radius(0, (NEVER - 1e-4) * sigma, sigma) == 0
    assert certified_radius(0, (NEVER + 1e-4) * sigma, sigma) > 0


# Steps


@given(st.lists(gradients, min_size=2, max_size=9), positive, positive)
def test_steps_are_ternary_odd_and_monotone(values: list[float], tau: float, sigma: float) -> None:
    gradient = torch.tensor(sorted(values), dtype=torch.float64)
    steps = quantised(gradient, tau, sigma)
    assert set(steps.tolist()) <= {-1.0, 0.0, 1.0}
    assert bool((steps.diff() >= 0).all())
    assert quantised(-gradient, tau, sigma).equal(-steps)


@pytest.mark.parametrize("gradient", [-0.3, -0.11, 0.0, 0.05, 0.12, 0.25])
def test_steps_are_the_likeliest_of_many_noisy_ones(gradient: float) -> None:
    noisy = gradient + 0.1 * np.random.default_rng(0).normal(size=100_000)
    classes = (noisy > 0.1).astype(int) - (noisy < -0.1)
    shares = {value: float((classes == value).mean()) for value in (-1, 0, 1)}
    assert q(gradient, 0.1, 0.1) == max(shares, key=lambda value: shares[value])


def test_the_threshold_toggles_weights_that_stay() -> None:
    gradient = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    for tau, stays in ((NEVER - 1e-3, False), (NEVER + 1e-3, True)):
        moved = gradient[gradient != 0]
        assert bool((quantised(moved, tau, 1.0) == 0).any()) == stays


# Its own learning stage


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_a_round_is_the_mean_of_ternary_steps(case_for: MakeCase, norm: str) -> None:
    case = learned_by(ffmu(epochs=0.01, rate=1e-2), replace(case_for(norm=norm), learned_rounds=1))
    crossed = engine_of(case).of_task("train")
    assert {request.client for request, _ in crossed} == {c.id for c in case.federation.clients}
    for _, reply in crossed:
        for name in case.parameters & reply.tensors.keys():
            steps = reply.tensors[name].abs() / 1e-2
            torch.testing.assert_close(steps, steps.round(), atol=1e-4, rtol=0)
            assert float(steps.max()) < 1.1
    # Eight clients of equal size; statistics are averaged like in FedAvg.
    for name in crossed[0][1].tensors:
        mean = torch.stack([reply.tensors[name].double() for _, reply in crossed]).mean(0)
        expected = case.initial[name].double() + mean
        torch.testing.assert_close(case.learned[name].double(), expected, atol=1e-6, rtol=0)


def test_steps_get_smaller_over_the_rounds(case_for: MakeCase) -> None:
    case = learned_by(ffmu(rate=1e-2), replace(case_for(), learned_rounds=3))
    rates = {request.round: request.settings["rate"] for request, _ in engine_of(case).crossed}
    cosine = case.config.learning.model_copy(update={"rounds": 3, "schedule": "cosine"})
    assert rates == {n: pytest.approx(1e-2 * rate_scale(cosine, n)) for n in (1, 2, 3)}
    assert rates[1] > rates[2] > rates[3] > 0


def test_both_forms_learn_alike() -> None:
    one = ffmu(tau=0.2).learning()
    other = adapted(tau=0.2, rounds=3, share=0.5).learning()
    assert one.options == other.options
    assert one.name == other.name == "ffmu-learning"


# Forgetting


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_a_request_changes_nothing_and_costs_nothing(case_for: MakeCase, norm: str) -> None:
    case = learned_by(ffmu(), replace(case_for(norm=norm), learned_rounds=1))
    engine_of(case).crossed.clear()
    state = finish(ffmu(), case)
    assert same_bits(state.tensors, case.learned)
    assert state.round == 0
    assert asked(case) == set()
    assert case.federation.ledger.total("ffmu").bytes == 0


@pytest.mark.parametrize(("sigma", "within"), [(0.1, False), (1.0, True)])
def test_it_says_whether_the_request_is_within_the_budget(
    case_for: MakeCase, sigma: float, within: bool
) -> None:
    case = learned_by(ffmu(), replace(case_for(), learned_rounds=1))
    state = ffmu(tau=sigma, sigma=sigma).start(case)
    # Two of eight clients with 27 samples each; of a weight without a gradient, P_0 = 0.6827.
    budget = sigma / 2 * (normal.ppf(1 - 2 * normal.cdf(-1)) + 1) * 8 * 27 / 2
    assert state.numbers == {"budget": pytest.approx(budget), "asked": 54, "within": within}
    says = "may cover them" if within else "does not cover them"
    assert state.finished.startswith("unchanged: 54 of 216 samples")
    assert state.finished.endswith(f"at most {budget:.0f} {says}")


def test_the_adapted_form_goes_on_over_the_retain_clients(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    cases = [case_for(), case_for(clients=repainted(tiny_clients, "east"))]
    method = adapted(rounds=2, rate=1e-2, share=0.3)
    states = [finish(method, case) for case in cases]
    assert asked(cases[0]) == {client.id for client in cases[0].request.retain}
    assert same_bits(states[0].tensors, states[1].tensors)
    assert not same_bits(states[0].tensors, cases[0].learned)
    assert (states[0].round, states[0].finished) == (2, "all 2 rounds done")
    for request, _ in engine_of(cases[0]).crossed:
        assert request.settings["rate"] == pytest.approx(3e-3)
        assert (request.settings["tau"], request.settings["sigma"]) == (0.1, 0.1)


def everyone_gone(case_for: MakeCase) -> Case:
    return case_for(meddle=gone("", "train"), federation=FederationConfig(quorum=1.0))


@pytest.mark.parametrize("method", [adapted(), adapted().learning()])
def test_a_failed_round_leaves_the_state_as_it_was(case_for: MakeCase, method: Method[Any]) -> None:
    case = everyone_gone(case_for)
    state = method.start(case)
    before = copied(state.tensors)
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert same_bits(state.tensors, before)
    assert state.round == 0
