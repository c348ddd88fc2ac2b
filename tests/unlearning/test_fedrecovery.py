import math
from dataclasses import replace

import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase
from hypothesis import given
from hypothesis import strategies as st
from method_rounds import asked, finish

from foul.errors import UserError
from foul.federation.messages import Tensors
from foul.unlearning import Case, ForgetRequest, MethodState
from foul.unlearning.fedrecovery import budget_of, noise_for
from foul.unlearning.methods import make_method

WEIGHT = 4.0


def with_history(case: Case, *groups: str) -> Case:
    """The case of a run that kept S_g = 1 for these groups, and Z = 4."""
    ones = {name: torch.ones_like(case.learned[name]) for name in trained(case)}
    return replace(case, history=(dict.fromkeys(groups, ones), WEIGHT))


def trained(case: Case) -> list[str]:
    return sorted(name for name in case.parameters if name.split(".")[0] in ("E", "K", "V", "head"))


def recovered(case: Case, *options: str) -> MethodState:
    return finish(make_method("fedrecovery", options), case)


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_without_noise_it_is_the_formula(case_for: MakeCase, norm: str, scale: float) -> None:
    case = with_history(case_for(norm=norm), "domain:east")
    state = recovered(case, "sigma=0", f"scale={scale}")
    assert state.tensors.keys() == case.learned.keys()
    for name, tensor in state.tensors.items():
        step = scale / WEIGHT if name in trained(case) else 0
        torch.testing.assert_close(tensor, case.learned[name] - step)


def test_with_server_momentum_a_residual_counts_as_often_as_the_update_did(
    case_for: MakeCase,
) -> None:
    """One update u under momentum m and rate r ends at r (u + m u + m^2 u + ...)."""
    momentum, rate = 0.75, 0.5
    made = case_for(learning__server_momentum=momentum, learning__server_rate=rate)
    case = with_history(made, "domain:east")
    state = recovered(case, "sigma=0")
    moved = sum(rate * momentum**n for n in range(200)) / WEIGHT
    for name in trained(case):
        torch.testing.assert_close(state.tensors[name], case.learned[name] - moved)


def test_nobody_is_asked_for_anything(case_for: MakeCase) -> None:
    case = with_history(case_for(), "domain:east")
    state = recovered(case)
    assert (state.round, state.finished) == (0, "one step on the server")
    assert asked(case) == set()


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_noise_is_on_every_weight_and_on_no_statistic(case_for: MakeCase, norm: str) -> None:
    case = with_history(case_for(norm=norm), "domain:east")
    clean, noisy = recovered(case, "sigma=0"), recovered(case, "sigma=0.1")
    noise: Tensors = {n: t - clean.tensors[n] for n, t in noisy.tensors.items()}
    for name, tensor in noise.items():
        assert bool((tensor != 0).any()) == (name in trained(case)), name
    values = torch.cat([noise[name].flatten() for name in trained(case)])
    assert float(values.std()) == pytest.approx(0.1, rel=5 / math.sqrt(len(values)))
    assert abs(float(values.mean())) < 5 * 0.1 / math.sqrt(len(values))


def test_noise_is_the_same_every_time_and_another_for_another_request(case_for: MakeCase) -> None:
    one, same, other = (
        recovered(with_history(case_for(forget), "domain:east", "domain:west"))
        for forget in ("domain:east", "domain:east", "domain:west")
    )
    assert same_bits(one.tensors, same.tensors)
    assert not same_bits(one.tensors, other.tensors)


def test_the_learned_model_stays_as_it_was(case_for: MakeCase) -> None:
    case = with_history(case_for(), "domain:east")
    before = {name: tensor.clone() for name, tensor in case.learned.items()}
    recovered(case)
    assert same_bits(case.learned, before)


def test_a_group_without_history_is_refused_with_those_that_have_one(case_for: MakeCase) -> None:
    case = with_history(case_for(), "domain:east", "domain:west")
    both = ForgetRequest.parse("domain:east,west", case.federation.clients)
    with pytest.raises(UserError, match=r"'domain:east,west' \(it has domain:east, domain:west\)"):
        recovered(replace(case, request=both))


def test_a_client_of_the_only_domain_is_refused_by_name(case_for: MakeCase) -> None:
    case = with_history(case_for(), "domain:west")
    case.federation.without = frozenset(
        client.id for client in case.federation.clients if client.domain != "east"
    )
    one = ForgetRequest.parse("client:east-0", case.federation.clients)
    with pytest.raises(UserError, match=r"kept no history for 'client:east-0'"):
        recovered(replace(case, request=one))


# The privacy budget


@pytest.mark.parametrize(
    ("epsilon", "beta", "ratio"), [(0.1, 1e-5, 48.1), (1, 1e-5, 4.90), (10, 1e-5, 0.568)]
)
def test_noise_of_a_budget(epsilon: float, beta: float, ratio: float) -> None:
    assert noise_for(1, epsilon, beta) == pytest.approx(ratio, rel=2e-3)


@given(st.floats(0.01, 100), st.floats(0.05, 50), st.floats(1e-9, 0.5))
def test_noise_and_budget_are_inverse(distance: float, epsilon: float, beta: float) -> None:
    sigma = noise_for(distance, epsilon, beta)
    assert budget_of(distance, sigma, beta) == pytest.approx(epsilon, rel=1e-6)
