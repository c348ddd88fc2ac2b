"""The unlearning scope on top of kept outputs: loading, fetching and scoring it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.compress import decode
from foul.client.context import TaskContext
from foul.client.evaluate import hits
from foul.client.features import Features
from foul.client.forward import EVALUATION_BATCH
from foul.data.batches import ordered_batches
from foul.federation.messages import Numbers, Tensors, added, take_group

Answers = tuple[Tensor, Tensor]
"""Logits of a batch, and its labels."""


def owner_of(context: TaskContext) -> str:
    """Under whose name a client keeps things between the rounds of one attempt to unlearn."""
    return f"{context.settings['session']}-{context.data.id}"


def received_scope(context: TaskContext) -> Tensors:
    """`scope` as it was sent, or that of the round before moved by `step`.

    It is kept if the next message may build upon it: in 8 bits steps can travel, weights cannot.
    """
    scope = decode(take_group(context.tensors, "scope"))
    if not scope:
        scope = added(
            held_scope(context, context.round - 1), decode(take_group(context.tensors, "step"))
        )
    if context.settings["stepwise"]:
        context.features.keep(owner_of(context), "scope", context.round, scope)
    return scope


def held_scope(context: TaskContext, round: int) -> Tensors:
    """The scope that was received in this round."""
    held = context.features.kept(owner_of(context), "scope", round)
    if held is None:
        raise LookupError(f"the scope of round {round} is not here")
    return held


def load_scope(context: TaskContext, scope: Tensors) -> None:
    """The scope, on top of the tensors that `freeze` kept."""
    rest = context.features.load_rest(context.settings["frozen"])
    if rest is None:
        raise LookupError("the frozen parts are not here")
    replace(context, tensors=rest | scope).load()


def scope_features(context: TaskContext, split: str) -> Features:
    """What `freeze` kept of a split."""
    samples = getattr(context.data, split)
    found = context.features.load(context.settings["frozen"], context.data.id, split, samples)
    if found is None:
        raise LookupError(f"the outputs of the frozen parts for '{split}' are not here")
    return found


def scope_answers(context: TaskContext, split: str) -> list[Answers]:
    """What the live scope answers on a split, batch by batch; nothing without samples."""
    if len(getattr(context.data, split)) == 0:
        return []
    features = scope_features(context, split)
    return list(_answers(context, features, torch.arange(len(features))))


def score_answers(answers: Iterable[Answers]) -> Numbers:
    """Samples, correct answers and summed cross-entropy."""
    samples, correct, loss = 0, 0, 0.0
    for logits, labels in answers:
        samples += len(labels)
        correct += hits(logits, labels)
        loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return {"samples": samples, "correct": correct, "loss": loss}


def count_hits(context: TaskContext, features: Features, rows: Tensor) -> int:
    """Correct answers of the live scope on these rows."""
    return sum(hits(logits, labels) for logits, labels in _answers(context, features, rows))


def spread(features: Features, most: int) -> Tensor:
    """At most so many rows, spread evenly over all of them."""
    count = min(len(features), most)
    return torch.arange(count) * len(features) // max(1, count)


def batches_of(
    context: TaskContext, features: Features, rows: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """E's output, z_K and labels of these rows, batch by batch, on the device."""
    for batch in ordered_batches(len(rows), EVALUATION_BATCH):
        extracted, z_k, labels = features.batch(rows[batch])
        yield extracted.to(context.device), z_k.to(context.device), labels.to(context.device)


def _answers(context: TaskContext, features: Features, rows: Tensor) -> Iterator[Answers]:
    net = context.net.eval()
    with torch.inference_mode():
        for extracted, z_k, labels in batches_of(context, features, rows):
            with context.meter.step(("score", *extracted.shape)):
                logits = net.joint_logits(z_k, net.V(extracted))
            yield logits, labels
