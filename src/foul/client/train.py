"""The task `train`: descend a loss of the deployed head, answer with how the network changed."""

from dataclasses import replace

import torch
from torch import Tensor

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.client.unlearn import LOSSES
from foul.config.schema import LearningConfig
from foul.data.batches import to_float
from foul.federation.messages import Numbers, Tensors, take_group
from foul.learning.local import Fetch, LocalTraining, Phase, Terms
from foul.learning.optimisers import masked_sgd, ternary
from foul.models import part_of


def train(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Local training of the named parts of `model`; the reply is their change, statistics included.

    Settings: `loss` (cross_entropy or bounded), `parts`, `epochs`, `rate`, `min_steps`, `fresh`
    (each step draws its batch anew), `learning` (batch size, momentum, weight decay), and for
    ternary steps `tau` and `sigma`. Tensors: `model`; `teacher`, if its answers are the labels;
    `mask`, whose zeros do not change.
    """
    settings = context.settings
    fetch = _taught(context) if take_group(context.tensors, "teacher") else None
    model = take_group(context.tensors, "model")
    replace(context, tensors=model).load()
    parts = tuple(settings["parts"])
    names = {name: tensor for name, tensor in model.items() if part_of(name) in parts}
    start = context.state(names)
    loss = LOSSES[settings["loss"]]

    def terms(images: Tensor, labels: Tensor) -> Terms:
        return {settings["loss"]: loss(context.net(images), labels)}

    phase = Phase(
        f"train/{settings['loss']}",
        parts,
        settings["epochs"],
        settings["rate"],
        terms,
        min_steps=settings.get("min_steps", 1),
        fresh=settings.get("fresh", False),
    )
    mask = take_group(context.tensors, "mask")
    if mask:
        phase = replace(phase, optimiser=masked_sgd(mask))
    if "tau" in settings:
        phase = replace(phase, optimiser=ternary(settings["tau"], settings["sigma"]))
    config = LearningConfig.model_validate(settings["learning"])
    losses = LocalTraining(context, config).run(phase, fetch)
    end = context.state(names)
    return {name: end[name] - start[name] for name in start}, {
        "samples": len(context.data.train),
        "losses": losses,
    }


def _taught(context: TaskContext) -> Fetch:
    """Batches with the teacher's answers as labels: the client's own are not looked at."""
    replace(context, tensors=take_group(context.tensors, "teacher")).load()
    train = context.data.train
    answers = [torch.empty(0, dtype=torch.int64)]
    for logits, _ in forward(context, train, "outputs", context.net):
        answers.append(logits.argmax(1).cpu())
    labels = torch.cat(answers)

    def fetch(rows: Tensor) -> tuple[Tensor, ...]:
        images, _ = train.batch(rows)
        return to_float(images.to(context.device)), labels[rows]

    return fetch
