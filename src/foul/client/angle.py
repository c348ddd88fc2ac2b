"""The task `angle`: does the server's step go where this client would go?"""

from dataclasses import replace

import torch
from torch.nn import functional

from foul.client.context import TaskContext
from foul.data.batches import to_float
from foul.federation.messages import Numbers, Tensors, take_group


def angle(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""The cosine of the server's step and this client's cross-entropy step
    :math:`-\nabla L(\theta)` at the model the round started from, over the tensors that the step
    changed. At most `samples` training samples are asked, spread evenly.

    The answer is None where one of the two is zero.
    """
    replace(context, tensors=take_group(context.tensors, "model")).load()
    step = take_group(context.tensors, "step")
    train = context.data.train
    count = min(len(train), int(context.settings["samples"]))
    if count == 0:
        return {}, {"cosine": None}
    images, labels = train.batch(torch.arange(count) * len(train) // count)
    net = context.net.eval()
    changed = dict(net.named_parameters())
    for name, parameter in changed.items():
        parameter.requires_grad_(name in step)
    with context.meter.step(("angle", len(step), *images.shape)):
        loss = functional.cross_entropy(
            net(to_float(images.to(context.device))), labels.to(context.device)
        )
        if not loss.requires_grad:
            # The deployed head does not use what the step changed.
            return {}, {"cosine": None}
        wanted = {name: changed[name] for name in step}
        gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    product, one, other = 0.0, 0.0, 0.0
    for (name, parameter), gradient in zip(wanted.items(), gradients, strict=True):
        moved = step[name].to(parameter).double()
        way = torch.zeros_like(moved) if gradient is None else -gradient.double()
        product += float((moved * way).sum())
        one += float(moved.square().sum())
        other += float(way.square().sum())
    return {}, {"cosine": product / (one * other) ** 0.5 if one and other else None}
