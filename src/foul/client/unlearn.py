"""The task `unlearn`: train the scope on top of the frozen parts, answer with its delta."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from foul.client.compress import decode, encode
from foul.client.context import TaskContext
from foul.client.scope import (
    load_scope,
    owner_of,
    received_scope,
    scope_answers,
    scope_features,
    score_answers,
)
from foul.config.schema import LearningConfig
from foul.federation.messages import Numbers, Tensors
from foul.learning.local import LocalTraining, Phase, Terms
from foul.learning.losses import (
    bounded_unlearning_loss,
    classification_loss,
    fooling_loss,
    levelling_loss,
    margins,
    weakest_loss,
)

LOSSES = {
    "cross_entropy": classification_loss,
    "bounded": bounded_unlearning_loss,
    "unlikelihood": fooling_loss,
}


def unlearn(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Descend the named loss of the joint head on the scope; with `level`, also so many times how
    much surer it is of training samples than the received scope is of validation samples.

    The answer also says how well the *received* scope does on the splits, so that the server
    learns what its last step did without another round of traffic.
    """
    settings = context.settings
    received = received_scope(context)
    load_scope(context, received)
    answers = {split: scope_answers(context, split) for split in settings["splits"]}
    scores = {split: score_answers(given) for split, given in answers.items()}
    level = settings["level"] if answers.get("validation") else 0.0
    held_out = torch.cat([margins(*given) for given in answers["validation"]]) if level else None
    loss = _loss(settings)
    config = LearningConfig.model_validate(settings["learning"])

    def terms(extracted: Tensor, z_k: Tensor, labels: Tensor) -> Terms:
        logits = context.net.joint_logits(z_k, context.net.V(extracted))
        named = {settings["loss"]: loss(logits, labels)}
        if held_out is not None:
            named["level"] = level * levelling_loss(logits, labels, held_out)
        return named

    phase = Phase(
        f"unlearn/{settings['loss']}",
        tuple(received),
        settings["epochs"],
        settings["rate"],
        terms,
        fix_statistics=True,
        min_steps=settings["min_steps"],
        rate_epochs=settings["rate_epochs"],
    )
    start = context.state(received)
    descended = LocalTraining(context, config).run(phase, scope_features(context, "train").batch)
    end = context.state(received)
    deltas = {name: end[name] - start[name] for name in start}
    numbers = {
        "samples": len(context.data.train),
        "scores": scores,
        "loss": sum(descended.values()),
    }
    if settings["precision"] == "int8":
        return _with_feedback(context, deltas), numbers
    return encode(deltas, settings["precision"]), numbers


def _loss(settings: Mapping[str, Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """What to descend: a loss by its name, with what it must know."""
    if settings["loss"] != "weakest":
        return LOSSES[settings["loss"]]
    aim, depth = settings["aim"], settings["depth"]
    return lambda logits, labels: weakest_loss(logits, labels, aim, depth)


def _with_feedback(context: TaskContext, deltas: Tensors) -> Tensors:
    """8 bits, and what they lose is added to the next round's deltas (error feedback)."""
    store, owner = context.features, owner_of(context)
    lost = store.kept(owner, "lost", context.round - 1)
    wanted = {name: delta + lost[name] if lost else delta for name, delta in deltas.items()}
    sent = encode(wanted, "int8")
    told = decode(sent)
    store.keep(owner, "lost", context.round, {n: wanted[n] - told[n] for n in wanted})
    return sent
