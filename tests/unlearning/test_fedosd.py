from typing import Any

import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase, engine_of, gone
from method_rounds import copied, finish
from torch import Tensor

from foul.errors import UserError
from foul.federation.federation import QuorumError
from foul.federation.messages import Tensors
from foul.models import deployed_state
from foul.unlearning import Case, Method
from foul.unlearning.methods import make_method


def fedosd(*options: str) -> Method[Any]:
    return make_method("fedosd", ["batch_size=8", "epochs=0.5", *options])


def flat(tensors: Tensors, case: Case) -> Tensor:
    """The trained weights of the deployed parts as one vector."""
    names = sorted(case.parameters & deployed_state(tensors).keys())
    return torch.cat([tensors[name].double().flatten() for name in names])


def moves(case: Case, method: Method[Any]) -> list[tuple[Tensor, list[Tensor], list[Tensor]]]:
    """Each round's step, the retain clients' updates and the forget clients'."""
    state, rounds = method.start(case), []
    while not state.finished:
        before = copied(state.tensors)
        engine_of(case).crossed.clear()
        method.step(case, state)
        step = flat(state.tensors, case) - flat(before, case)
        retain: list[Tensor] = []
        forget: list[Tensor] = []
        for request, reply in engine_of(case).crossed:
            side = forget if request.client in case.request.forget_ids else retain
            side.append(flat(reply.tensors, case))
        rounds.append((step, retain, forget))
    return rounds


@pytest.mark.parametrize("forget", ["domain:east", "client:east-0"])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_forgetting_steps_are_orthogonal_to_retain_updates(
    case_for: MakeCase, norm: str, forget: str
) -> None:
    case = case_for(forget, norm=norm)
    method = fedosd("unlearning_rounds=2", "recovery_rounds=0")
    for step, retain, forgetting in moves(case, method):
        mean = torch.stack(forgetting).mean(0)
        assert len(retain) == len(case.request.retain)
        assert len(forgetting) == len(case.request.forget)
        for update in retain:
            assert abs(torch.cosine_similarity(step, update, dim=0)) < 1e-4
        assert step @ mean > 0
        torch.testing.assert_close(step.norm(), mean.norm(), rtol=1e-4, atol=0)


def test_forget_clients_descend_the_bounded_loss_and_are_gone_in_recovery(
    case_for: MakeCase,
) -> None:
    case = case_for()
    rates = ("rate=0.02", "recovery_rate=0.007")
    finish(fedosd("unlearning_rounds=1", "recovery_rounds=1", *rates), case)
    told = {
        (r.round, r.client in case.request.forget_ids): (r.settings["loss"], r.settings["rate"])
        for r, _ in engine_of(case).crossed
    }
    assert told == {
        (1, True): ("bounded", 0.02),
        (1, False): ("cross_entropy", 0.02),
        (2, False): ("cross_entropy", 0.007),
    }


def test_recovery_does_not_come_nearer_to_the_learned_model(case_for: MakeCase) -> None:
    case = case_for()
    method = fedosd("unlearning_rounds=1", "recovery_rounds=3", "rate=0.1")
    state, distances = method.start(case), []
    while not state.finished:
        method.step(case, state)
        distances.append((flat(state.tensors, case) - flat(case.learned, case)).norm().item())
    assert distances == sorted(distances)
    assert distances[0] > 0


def test_recovery_alone_is_the_plain_mean(case_for: MakeCase) -> None:
    case = case_for()
    method = fedosd("unlearning_rounds=0", "recovery_rounds=1")
    ((step, retain, forgetting),) = moves(case, method)
    assert forgetting == []
    torch.testing.assert_close(step, torch.stack(retain).mean(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize("recovery", [0, 1])
def test_statistics_are_the_retain_clients_mean(case_for: MakeCase, recovery: int) -> None:
    case = case_for(norm="batch")
    method = fedosd(f"unlearning_rounds={1 - recovery}", f"recovery_rounds={recovery}")
    state = finish(method, case)
    replies = [
        reply.tensors
        for request, reply in engine_of(case).crossed
        if request.client not in case.request.forget_ids
    ]
    statistics = case.buffers & replies[0].keys()
    assert statistics
    for name in statistics:
        change = torch.stack([reply[name].double() for reply in replies]).mean(0)
        expected = (case.learned[name].double() + change).to(state.tensors[name].dtype)
        torch.testing.assert_close(state.tensors[name], expected)


def test_half_the_step_goes_half_as_far(case_for: MakeCase) -> None:
    ends = [
        finish(fedosd("unlearning_rounds=1", "recovery_rounds=0", f"step={step}"), case_for())
        for step in (1, 0.5)
    ]
    case = case_for()
    whole, half = (flat(end.tensors, case) - flat(case.learned, case) for end in ends)
    torch.testing.assert_close(half, whole / 2, atol=1e-6, rtol=0)


def test_without_forget_clients_a_round_fails_and_changes_nothing(case_for: MakeCase) -> None:
    case = case_for(meddle=gone("east", "train"))
    method = fedosd()
    state = method.start(case)
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert same_bits(state.tensors, case.learned)
    assert state.round == 0


def test_the_servers_products_are_counted(case_for: MakeCase) -> None:
    case = case_for()
    finish(fedosd("unlearning_rounds=1", "recovery_rounds=0"), case)
    weights = len(flat(case.learned, case))
    model = sum(tensor.numel() for tensor in deployed_state(case.learned).values())
    retain, forget = len(case.request.retain), len(case.request.forget)
    clients = retain + forget
    means = 2 * model * (retain + 1) + 2 * model * (forget + 1)
    expected = clients * (clients + 1) * weights + means
    assert case.federation.ledger.total("fedosd").flops_server == expected


def test_no_rounds_at_all_are_refused() -> None:
    with pytest.raises(UserError, match="both 0"):
        fedosd("unlearning_rounds=0", "recovery_rounds=0")
