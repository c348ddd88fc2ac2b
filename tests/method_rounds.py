"""Methods run to their end, outside of a run folder."""

from dataclasses import replace
from typing import Any

from forget_cases import engine_of

from foul.federation.messages import Tensors
from foul.unlearning import Case, ForgetRequest, Method, MethodState


def finish(method: Method[Any], case: Case) -> MethodState:
    state = method.start(case)
    while not state.finished:
        method.step(case, state)
    return state


def with_all(case: Case) -> Case:
    """The case as a method's own learning stage sees it: all clients are retained."""
    return replace(case, request=ForgetRequest("", (), tuple(case.federation.clients)))


def learned_by(method: Method[Any], case: Case) -> Case:
    """The case after the method's own learning stage."""
    learning = method.learning()
    assert learning is not None
    own = finish(learning, with_all(case))
    return replace(case, learned=own.tensors, learned_rounds=own.round, own=own)


def asked(case: Case) -> set[str]:
    """Everyone who was asked for anything."""
    return {request.client for request, _ in engine_of(case).crossed}


def copied(tensors: Tensors) -> Tensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}
