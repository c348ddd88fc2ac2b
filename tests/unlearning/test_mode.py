from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase, engine_of, gone
from hypothesis import given
from hypothesis import strategies as st
from method_rounds import copied, finish

from foul.data import ClientData, Samples
from foul.errors import UserError
from foul.federation.federation import QuorumError
from foul.federation.messages import take_group
from foul.unlearning import Method
from foul.unlearning.methods import make_method
from foul.unlearning.mode import blended


def mode(*options: str) -> Method[Any]:
    return make_method("mode", ["batch_size=8", "epochs=0.5", *options])


def relabelled(clients: Sequence[ClientData], domain: str) -> list[ClientData]:
    """The same clients, but this domain's training labels are all the same."""

    def same(samples: Samples) -> Samples:
        return replace(samples, labels=torch.zeros_like(samples.labels))

    return [replace(c, train=same(c.train)) if c.domain == domain else c for c in clients]


# The blend


@given(st.floats(0, 1), st.integers(1, 6))
def test_blends_come_nearer_by_the_same_factor(keep: float, times: int) -> None:
    start = {"w": torch.tensor([2.0, -1.0], dtype=torch.float64)}
    other = {"w": torch.tensor([0.5, 3.0], dtype=torch.float64)}
    now = start
    for _ in range(times):
        now = blended(now, other, keep, frozenset())
    expected = keep**times * (start["w"] - other["w"])
    torch.testing.assert_close(now["w"] - other["w"], expected, atol=1e-12, rtol=1e-9)


def test_keeping_all_or_nothing_is_exact_and_statistics_stay(case_for: MakeCase) -> None:
    case = case_for(norm="batch")
    assert case.buffers
    assert same_bits(blended(case.learned, case.initial, 1, case.buffers), case.learned)
    none = blended(case.learned, case.initial, 0, case.buffers)
    for name, tensor in none.items():
        source = case.learned if name in case.buffers else case.initial
        assert tensor.equal(source[name]), name


# Rounds


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_the_degradation_model_learns_from_retain_clients_and_then_rests(
    case_for: MakeCase, norm: str
) -> None:
    case, method = case_for(norm=norm), mode("degradation_rounds=2", "guidance_rounds=1")
    state = method.start(case)
    assert same_bits(take_group(state.extra, "de"), case.initial)
    seen = [copied(take_group(state.extra, "de"))]
    while not state.finished:
        method.step(case, state)
        seen.append(copied(take_group(state.extra, "de")))
    assert state.round == 3
    assert [same_bits(*pair) for pair in pairwise(seen)] == [False, False, True]
    assert {request.client for request, _ in engine_of(case).of_task("learn")} == {
        client.id for client in case.request.retain
    }


def test_guidance_sends_the_degradation_model_to_forget_clients_alone(case_for: MakeCase) -> None:
    case = case_for()
    state = finish(mode("degradation_rounds=1", "guidance_rounds=0"), case)
    trained = engine_of(case).of_task("train")
    assert {request.client for request, _ in trained} == {c.id for c in case.federation.clients}
    for request, _ in trained:
        teacher = take_group(request.tensors, "teacher")
        assert bool(teacher) == (request.client in case.request.forget_ids)
        for name, tensor in teacher.items():
            assert tensor.equal(take_group(state.extra, "de")[name])


def test_a_round_is_the_blend_and_the_mean_of_all_changes(case_for: MakeCase) -> None:
    case = case_for()
    state = finish(mode("degradation_rounds=1", "guidance_rounds=0", "keep=0.7"), case)
    start = blended(case.learned, take_group(state.extra, "de"), 0.7, case.buffers)
    changes = [reply.tensors for _, reply in engine_of(case).of_task("train")]
    for name, tensor in state.tensors.items():
        expected = start[name].double()
        if name in changes[0]:
            # Eight clients of equal size.
            expected = expected + torch.stack([c[name].double() for c in changes]).mean(0)
        torch.testing.assert_close(tensor.double(), expected, atol=1e-6, rtol=0)


def test_labels_of_forget_clients_are_not_looked_at(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    method = mode("degradation_rounds=1", "guidance_rounds=1")
    one = finish(method, case_for())
    other = finish(method, case_for(clients=relabelled(tiny_clients, "east")))
    assert same_bits(one.tensors, other.tensors)
    # The test would notice: labels of retain clients do matter.
    third = finish(method, case_for(clients=relabelled(tiny_clients, "west")))
    assert not same_bits(one.tensors, third.tensors)


@pytest.mark.parametrize("task", ["train", "learn"])
def test_a_failed_round_leaves_the_state_as_it_was(case_for: MakeCase, task: str) -> None:
    case = case_for(meddle=gone("east" if task == "train" else "", task))
    method = mode()
    state = method.start(case)
    tensors, extra = copied(state.tensors), copied(state.extra)
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert same_bits(state.tensors, tensors)
    assert same_bits(state.extra, extra)
    assert state.round == 0


def test_a_record_has_the_costs_of_both_models(case_for: MakeCase) -> None:
    case = case_for()
    method = mode()
    record = method.step(case, method.start(case))
    paid = case.federation.ledger.total("mode")
    costs = record["costs"].values()
    assert sum(cost["bytes_up"] for cost in costs) == paid.bytes_up
    assert sum(cost["bytes_down"] for cost in costs) == paid.bytes_down
    assert record["answered"] == len(case.federation.clients)


def test_no_rounds_at_all_are_refused() -> None:
    with pytest.raises(UserError, match="both 0"):
        mode("degradation_rounds=0", "guidance_rounds=0")
