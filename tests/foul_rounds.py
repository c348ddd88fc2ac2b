"""Rounds of FOUL on a case, and the sums they are compared with."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from forget_cases import engine_of

from foul.client.compress import decode
from foul.federation.messages import Reply, Request, Tensors
from foul.unlearning import Case, Foul, FoulOptions, MethodState

CLASSES = 3
"""Of the synthetic set."""
Pairs = Sequence[tuple[Request, Reply]]
PLAIN: dict[str, Any] = {
    "unfit": 100.0,
    "precision": "float32",
    "batch_size": 8,
    "epochs": 1.0,
    "min_steps": 1,
    "delta": 1.0,
    "chance": 100.0,
    "control": False,
    "forget": "bounded",
    "beta": 1.0,
}


def foul(**values: object) -> Foul:
    """FOUL in full precision with a fixed radius and the bounded loss; keywords change its
    options."""
    return Foul(FoulOptions.model_validate(PLAIN | values))


def rounds(case: Case, method: Foul, count: int = 99) -> tuple[MethodState, list[dict[str, Any]]]:
    """At most so many rounds from the beginning."""
    state, records = method.start(case), list[dict[str, Any]]()
    while not state.finished and len(records) < count:
        records.append(method.step(case, state))
    return state, records


def asked(case: Case, task: str | None = None) -> set[str]:
    """Clients that a request for this task, or any, was sent to."""
    crossed = engine_of(case).crossed
    return {request.client for request, _ in crossed if task in (None, request.task)}


def of_role(case: Case, pairs: Pairs, forget: bool) -> Pairs:
    """What crossed between the server and the forget (or the retain) clients."""
    return [pair for pair in pairs if (pair[0].client in case.request.forget_ids) == forget]


def weight_of(reply: Reply, fairness: float = 1.0) -> float:
    """What a client counts in a mean: its samples, times a power of what it lost on them, which
    counts as no more than the loss of who answers by chance."""
    loss = min(reply.numbers["loss"], math.log(CLASSES))
    return float(reply.numbers["samples"] * loss**fairness)


def mean_of(replies: Pairs, fairness: float = 1.0) -> Tensors:
    """The mean of the deltas by the clients' weights, in double precision."""
    total = sum(weight_of(reply, fairness) for _, reply in replies)
    mean: Tensors = {}
    for _, reply in replies:
        for name, delta in decode(reply.tensors).items():
            share = delta.double() * (weight_of(reply, fairness) / total)
            mean[name] = mean[name] + share if name in mean else share
    return mean


def close(one: Tensors, other: Tensors, tolerance: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name].double(), other[name].double(), rtol=0, atol=tolerance)
