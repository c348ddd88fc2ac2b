"""The tasks of adapters (FUSED): keep a network, say how training would change it, train adapters
on top of it."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from foul.client.context import TaskContext
from foul.client.train import train
from foul.client.unlearn import LOSSES
from foul.config.schema import LearningConfig
from foul.federation.messages import Numbers, Tensors, join_groups
from foul.learning.adapters import make_adapters
from foul.learning.local import LocalTraining, Phase, Terms
from foul.learning.optimisers import adapting
from foul.models import part_of


def keep(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Keep the network that was sent under the name `base`, so that it travels once.

    Asked without any tensors, it only says whether the network is here already.
    """
    if context.tensors:
        context.features.save_rest(context.settings["base"], context.tensors)
    return {}, {"ready": context.features.load_rest(context.settings["base"]) is not None}


def survey(context: TaskContext) -> tuple[Tensors, Numbers]:
    """The task `train` for the network that is kept here."""
    return train(replace(context, tensors=join_groups({"model": _kept(context)})))


def adapt(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Local training of adapters on top of the network that is kept here; the reply is how their
    values changed.

    Everything else stays as it is: other weights, and the statistics of normalisation layers.

    Settings: `base`, `adapted` (names of the tensors that have adapters), `adapters` (their form),
    `loss`, `epochs`, `rate`, `learning`. Tensors: the adapters' values.
    """
    settings, base = context.settings, _kept(context)
    device = {name: base[name].to(context.device) for name in settings["adapted"]}
    adapters = make_adapters(device, **settings["adapters"])
    values = {
        name: nn.Parameter(tensor.to(context.device, copy=True))
        for name, tensor in context.tensors.items()
    }
    with torch.no_grad():
        start = adapters.adapted(dict(values))
    replace(context, tensors=base | start).load()
    loss = LOSSES[settings["loss"]]

    def terms(images: Tensor, labels: Tensor) -> Terms:
        return {settings["loss"]: loss(context.net(images), labels)}

    phase = Phase(
        # What a step costs depends on the layers that have gradients.
        f"adapt/{'+'.join(start)}",
        tuple({part_of(name): None for name in start}),
        settings["epochs"],
        settings["rate"],
        terms,
        fix_statistics=True,
        optimiser=adapting(adapters, values),
    )
    config = LearningConfig.model_validate(settings["learning"])
    LocalTraining(context, config).run(phase)
    change = {
        name: values[name].detach().cpu() - tensor.cpu() for name, tensor in context.tensors.items()
    }
    return change, {"samples": len(context.data.train)}


def _kept(context: TaskContext) -> Tensors:
    base = context.features.load_rest(context.settings["base"])
    if base is None:
        raise LookupError("the network that adapters change is not here")
    return base
