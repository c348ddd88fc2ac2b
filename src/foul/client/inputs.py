"""The task `inputs`: what the layers of the scope see of a client, as second moments."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from foul.client.compress import decode
from foul.client.context import TaskContext
from foul.client.scope import batches_of, held_scope, load_scope, scope_features, spread
from foul.client.symmetric import pack
from foul.federation.messages import Numbers, Tensors, take_group


def inputs(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""Mean of :math:`x x^T` over the inputs x of each layer whose weight is named: vectors, or the
    patches that a convolution sees. At most `samples` training samples are asked.

    Means over samples and places, of which the server needs the sum over clients alone.
    """
    scope = decode(take_group(context.tensors, "scope")) or held_scope(context, context.round)
    load_scope(context, scope)
    features = scope_features(context, "train")
    rows = spread(features, int(context.settings["samples"]))
    sums = _Moments(context.net, context.settings["weights"])
    net = context.net.eval()
    with torch.inference_mode():
        for extracted, z_k, _ in batches_of(context, features, rows):
            with (
                context.meter.step(("inputs", *context.settings["weights"], *extracted.shape)),
                sums,
            ):
                net.joint_logits(z_k, net.V(extracted))
    return pack(sums.means()), {"samples": len(rows)}


class _Moments:
    """Second moments of the inputs of some layers, while it is entered."""

    def __init__(self, net: nn.Module, weights: list[str]) -> None:
        self._layers = {name: net.get_submodule(name.removesuffix(".weight")) for name in weights}
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> None:
        for name, layer in self._layers.items():
            self._hooks.append(layer.register_forward_pre_hook(self._noting(name)))

    def __exit__(self, *error: object) -> None:
        while self._hooks:
            self._hooks.pop().remove()

    def means(self) -> Mapping[str, Tensor]:
        return {name: (self._sums[name] / self._counts[name]).cpu() for name in self._layers}

    def _noting(self, name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def note(layer: nn.Module, given: tuple[Tensor, ...]) -> None:
            seen = inputs_of(layer, given[0])
            product = seen.T @ seen
            self._sums[name] = self._sums[name] + product if name in self._sums else product
            self._counts[name] = self._counts.get(name, 0) + len(seen)

        return note


def inputs_of(layer: nn.Module, given: Tensor) -> Tensor:
    """What the rows of the layer's weight are multiplied with, one after the other."""
    if not isinstance(layer, nn.Conv2d):
        return given
    margin = layer.padding
    assert not isinstance(margin, str)
    patches = functional.unfold(given.contiguous(), layer.kernel_size, 1, margin, layer.stride)
    return patches.permute(0, 2, 1).reshape(-1, patches.shape[1])
