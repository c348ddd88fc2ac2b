"""The task `unlearn`: train the scope on top of the frozen parts, answer with its delta."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

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
from foul.client.symmetric import unpack
from foul.config.schema import LearningConfig
from foul.federation.messages import Numbers, Tensors, take_group
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
    much surer it is of training samples than the received scope is of validation samples. With
    `aside`, only the weights change that a matrix was sent for, and just where it leads.

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
    matrices = _matrices(context) if settings["aside"] else {}
    moved = [name for name in received if name in matrices] if matrices else list(received)

    def terms(extracted: Tensor, z_k: Tensor, labels: Tensor) -> Terms:
        logits = context.net.joint_logits(z_k, context.net.V(extracted))
        named = {settings["loss"]: loss(logits, labels)}
        if held_out is not None:
            named["level"] = level * levelling_loss(logits, labels, held_out)
        return named

    phase = Phase(
        f"unlearn/{settings['loss']}",
        tuple(moved),
        settings["epochs"],
        settings["rate"],
        terms,
        fix_statistics=True,
        min_steps=settings["min_steps"],
        rate_epochs=settings["rate_epochs"],
        precondition=stepping_aside(matrices) if matrices else None,
    )
    start = {name: received[name] for name in moved}
    descended = LocalTraining(context, config).run(phase, scope_features(context, "train").batch)
    end = context.state(start)
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


def _matrices(context: TaskContext) -> Tensors:
    """The matrices that gradients are multiplied with: as sent, or as kept in an earlier round."""
    store, owner = context.features, owner_of(context)
    sent = take_group(context.tensors, "aside")
    if sent:
        store.keep(owner, "aside", 0, sent)
    kept = sent or store.kept(owner, "aside", 0)
    if not kept:
        raise LookupError("the matrices of where to move are not here")
    return {name: matrix.to(context.device) for name, matrix in unpack(kept).items()}


def stepping_aside(matrices: Tensors) -> Callable[[Mapping[str, nn.Parameter]], None]:
    """Multiply each gradient with its matrix; all together keep the length that they had."""

    def precondition(parameters: Mapping[str, nn.Parameter]) -> None:
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        before = _length(gradients.values())
        for name, gradient in gradients.items():
            gradient.copy_((gradient.flatten(1) @ matrices[name]).view_as(gradient))
        # Where nothing is left to descend, it stays nothing.
        factor = before / _length(gradients.values()).clamp_min(1e-30)
        for gradient in gradients.values():
            gradient.mul_(factor)

    return precondition


def _length(gradients: Iterable[Tensor]) -> Tensor:
    length: Tensor = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return length


def _with_feedback(context: TaskContext, deltas: Tensors) -> Tensors:
    """8 bits, and what they lose is added to the next round's deltas (error feedback)."""
    store, owner = context.features, owner_of(context)
    lost = store.kept(owner, "lost", context.round - 1)
    wanted = {name: delta + lost[name] if lost else delta for name, delta in deltas.items()}
    sent = encode(wanted, "int8")
    told = decode(sent)
    store.keep(owner, "lost", context.round, {n: wanted[n] - told[n] for n in wanted})
    return sent
