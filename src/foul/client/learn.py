"""The task `learn`: local training of the network that was sent."""

import torch

from foul.client.compress import encode
from foul.client.context import TaskContext
from foul.client.evaluate import score
from foul.config.schema import LearningConfig
from foul.federation.messages import Numbers, Tensors
from foul.learning.local import LocalTraining
from foul.learning.objectives import OBJECTIVES


def learn(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Descend the objective on the training samples; answer with the new tensors.

    The answer also counts how well the *received* network did on the validation samples: the
    server learns its model's accuracy without another round of traffic.
    """
    context.load()
    validation = score(context, "validation")
    config = LearningConfig.model_validate(context.settings["learning"])
    training = LocalTraining(context, config)
    losses: dict[str, float] = {}
    for phase in OBJECTIVES[config.objective].phases(context.net, config, training.generator):
        losses.update(training.run(phase))
    tensors = context.state(context.tensors)
    if config.objective == "l2u" and config.l2u.reptile_step < 1:
        _outer_step(context.tensors, tensors, config.l2u.reptile_step)
    # A stand-in may travel in fewer bytes.
    return encode(tensors, context.settings.get("precision", "float32")), {
        "samples": len(context.data.train),
        "validation": validation,
        "losses": losses,
    }


def _outer_step(start: Tensors, inner: Tensors, epsilon: float) -> None:
    """Reptile: theta <- theta + epsilon (theta_inner - theta), in place on `inner`."""
    for name, tensor in inner.items():
        if tensor.is_floating_point():
            torch.lerp(start[name].to(tensor), tensor, epsilon, out=tensor)
