"""The task `channels`: how strongly the channels of named layers answer this client's images."""

from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.federation.messages import Numbers, Tensors


def channels(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""Per layer, :math:`\frac1n \sum_x \mathrm{pool}(\mathrm{relu}(a_l(x)))`: one number per
    channel, the mean over the training images and the places of the map.

    Settings: `layers`, names of modules whose output is a map; the deployed head must need them.
    """
    context.load()
    samples = context.data.train
    if len(samples) == 0:
        raise ValueError("this client has no training samples")
    sums: Tensors = {}
    # The live network is shared: whatever happens, the next task must not be listened to.
    with ExitStack() as hooks:
        for layer in context.settings["layers"]:
            hooks.callback(_listen(context.net, layer, sums).remove)
        for _ in forward(context, samples, "outputs", context.net):
            pass
    silent = sorted(set(context.settings["layers"]) - sums.keys())
    if silent:
        raise ValueError(f"the deployed head does not need '{silent[0]}'")
    means = {layer: (total / len(samples)).float().cpu() for layer, total in sums.items()}
    return means, {"samples": len(samples)}


def _listen(net: nn.Module, layer: str, sums: Tensors) -> RemovableHandle:
    """Add up what this layer's channels answer from now on."""

    def add(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pooled = torch.relu(output).mean((2, 3)).double().sum(0)
        sums[layer] = sums[layer] + pooled if layer in sums else pooled

    return net.get_submodule(layer).register_forward_hook(add)
