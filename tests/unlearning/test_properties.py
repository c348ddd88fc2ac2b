"""What every method must pass, whatever it does: one suite over the table of methods."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase, Meddle, engine_of, repainted

from foul.data import ClientData
from foul.federation.federation import QuorumError, not_finite
from foul.federation.messages import Reply, Request, Tensors
from foul.unlearning import Case, MethodState
from foul.unlearning.method import Method
from foul.unlearning.methods import METHODS, make_method
from foul.unlearning.request import ForgetRequest

FAST: dict[str, Any] = {
    "rounds": 2,
    "extra": 0,
    "standin_rounds": 1,
    "standin_epochs": 1.0,
    "batch_size": 8,
    "epochs": 1.0,
    "unlearning_rounds": 1,
    "recovery_rounds": 1,
    "degradation_rounds": 1,
    "guidance_rounds": 1,
}
"""Options that make a method quick, where it has them."""
EXACT = ("retrain", "retrain-matched", "retrain-again", "fats")
UNASKED = ("none", "fedrecovery")
"""They ask no client for anything."""
every_method = pytest.mark.parametrize("name", list(METHODS))


def quick(name: str) -> Method[Any]:
    fields = type(METHODS[name].options).model_fields
    return make_method(name, [f"{key}={value}" for key, value in FAST.items() if key in fields])


def with_history(case: Case) -> Case:
    """Residuals for the domain that is forgotten, as a run would have added them up."""
    generator = torch.Generator().manual_seed(3)
    names = sorted(case.parameters)
    residual = {n: torch.randn(case.learned[n].shape, generator=generator) for n in names}
    return replace(case, history=({case.request.text: residual}, 10.0))


Step = Callable[[Method[Any], Case, MethodState], dict[str, Any]]


def plainly(method: Method[Any], case: Case, state: MethodState) -> dict[str, Any]:
    return method.step(case, state)


def prepared(case: Case, method: Method[Any], step: Step = plainly) -> Case:
    """The case after the method's own learning stage, if it has one."""
    case = with_history(case)
    learning = method.learning()
    if learning is None:
        return case
    everyone = ForgetRequest("", (), tuple(case.federation.clients))
    whole = replace(case, request=everyone)
    state = learning.start(whole)
    finish(whole, learning, state, step)
    return replace(case, learned=state.tensors, learned_rounds=state.round, own=state)


def finish(
    case: Case, method: Method[Any], state: MethodState | None = None, step: Step = plainly
) -> Tensors:
    """The unlearned model."""
    state = state or method.start(case)
    while not state.finished:
        step(method, case, state)
    return state.tensors


def unlearned(case: Case, name: str) -> Tensors:
    method = quick(name)
    return finish(prepared(case, method), method)


_USUAL: dict[str, Tensors] = {}


def usual(case_for: MakeCase, name: str) -> Tensors:
    """The model of an undisturbed run; made once, since the same seed gives the same bits."""
    if name not in _USUAL:
        _USUAL[name] = unlearned(case_for(), name)
    return _USUAL[name]


@every_method
@pytest.mark.parametrize(
    ("forget", "norm"), [("client:east-0,west-1", "batch"), ("domain:east", "group")]
)
def test_some_clients_are_forgotten(case_for: MakeCase, name: str, norm: str, forget: str) -> None:
    case = case_for(forget, norm=norm)
    model = unlearned(case, name)
    assert model.keys() == case.learned.keys()
    for key, tensor in model.items():
        assert tensor.shape == case.learned[key].shape
        assert tensor.dtype == case.learned[key].dtype
        assert bool(torch.isfinite(tensor.double()).all())


@every_method
def test_the_same_seed_gives_the_same_bits(case_for: MakeCase, name: str) -> None:
    assert same_bits(unlearned(case_for(), name), usual(case_for, name))


@every_method
def test_the_order_of_clients_does_not_matter(
    case_for: MakeCase, tiny_clients: Sequence[ClientData], name: str
) -> None:
    one, other = usual(case_for, name), unlearned(case_for(clients=tiny_clients[::-1]), name)
    for key, tensor in one.items():
        torch.testing.assert_close(tensor.double(), other[key].double(), rtol=0, atol=1e-5)


def answering(client: str, tensors: bool) -> Meddle:
    """This client fails, or sends NaN, whenever it is asked for tensors of its own."""

    def meddle(request: Request, reply: Reply) -> Reply:
        if request.client != client or not reply.tensors:
            return reply
        if not tensors:
            return Reply(request.client, error="away")
        broken = {
            n: t * torch.nan if t.is_floating_point() else t for n, t in reply.tensors.items()
        }
        return replace(reply, tensors=broken)

    return meddle


@every_method
@pytest.mark.parametrize("broken", [False, True], ids=["away", "NaN"])
def test_a_retain_client_that_is_away_or_broken_is_left_out(
    case_for: MakeCase, name: str, broken: bool
) -> None:
    """In every round, of the method and of its own learning stage, the record says so and why."""
    case, method = case_for(meddle=answering("west-1", broken)), quick(name)
    reason = "holds NaN or infinity" if broken else "away"
    spoiled: list[bool] = []

    def step(method: Method[Any], case: Case, state: MethodState) -> dict[str, Any]:
        engine_of(case).crossed.clear()
        record = method.step(case, state)
        sent = [reply for request, reply in engine_of(case).crossed if request.client == "west-1"]
        spoiled.append(any(reply.error or not_finite(reply.tensors) for reply in sent))
        assert (reason in record["failures"].get("west-1", "")) == spoiled[-1]
        return record

    model = finish(prepared(case, method, step), method, step=step)
    assert all(bool(torch.isfinite(tensor.double()).all()) for tensor in model.values())
    assert any(spoiled) == (name not in UNASKED)


@every_method
def test_forget_clients_that_are_offline(case_for: MakeCase, name: str) -> None:
    """A method that needs them says so and stops; to any other it makes no difference."""

    def offline(request: Request, reply: Reply) -> Reply:
        if request.client.startswith("east") and not learning:
            return Reply(request.client, error="offline")
        return reply

    learning = True
    method, case = quick(name), case_for(meddle=offline)
    ready = prepared(case, method)
    learning = False
    if method.needs.forget_online:
        with pytest.raises(QuorumError):
            finish(ready, method)
    else:
        assert same_bits(finish(ready, method), usual(case_for, name))


@every_method
def test_only_what_is_declared_is_asked_of_forget_clients(case_for: MakeCase, name: str) -> None:
    method, case = quick(name), case_for()
    ready = prepared(case, method)
    engine_of(case).crossed.clear()
    finish(ready, method)
    asked = {request.client for request, _ in engine_of(case).crossed}
    assert method.needs.forget_online or not asked & case.request.forget_ids


@every_method
def test_a_learning_stage_of_its_own_is_declared(name: str) -> None:
    method = quick(name)
    assert method.needs.own_learning == (method.learning() is not None)


@every_method
def test_resumed_it_ends_with_the_same_bits(case_for: MakeCase, name: str) -> None:
    """Another process goes on after every round, from what was saved."""
    method, case = quick(name), case_for()
    case = prepared(case, method)
    state = method.start(case)
    while not state.finished:
        method.step(case, state)
        numbers = json.loads(json.dumps(state.numbers))
        tensors = {n: t.clone() for n, t in state.tensors.items()}
        extra = {n: t.clone() for n, t in state.extra.items()}
        state = MethodState(tensors, extra, numbers, state.round, state.finished)
        method = quick(name)
    assert same_bits(state.tensors, usual(case_for, name))


@every_method
def test_the_ledger_is_what_crossed(case_for: MakeCase, name: str) -> None:
    case = case_for()
    unlearned(case, name)
    crossed = engine_of(case).crossed
    totals = case.federation.ledger.totals.values()
    assert sum(cost.bytes_down for cost in totals) == sum(r.bytes for r, _ in crossed)
    assert sum(cost.bytes_up for cost in totals) == sum(a.bytes for _, a in crossed)


@every_method
def test_a_round_that_fails_leaves_the_state_as_it_was(case_for: MakeCase, name: str) -> None:
    failing = False

    def meddle(request: Request, reply: Reply) -> Reply:
        return Reply(request.client, error="all are away") if failing else reply

    method, case = quick(name), case_for(meddle=meddle)
    case = prepared(case, method)
    state = method.start(case)
    if state.finished:
        return
    before = {n: t.clone() for n, t in state.tensors.items()}
    failing = True
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert same_bits(state.tensors, before)
    assert (state.round, state.finished) == (0, "")
    failing = False
    assert same_bits(finish(case, method, state), usual(case_for, name))


@pytest.mark.parametrize("name", [name for name in EXACT if name in METHODS])
def test_exact_methods_are_blind_to_what_is_forgotten(
    case_for: MakeCase, tiny_clients: Sequence[ClientData], name: str
) -> None:
    repainted_east = repainted(tiny_clients, "east")
    assert same_bits(usual(case_for, name), unlearned(case_for(clients=repainted_east), name))
