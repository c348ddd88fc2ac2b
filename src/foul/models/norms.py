"""Which normalisation layer follows which convolution."""

from itertools import pairwise

from torch import nn

from foul.models.disentangled import DisentangledNet, part_of


def normalised(net: DisentangledNet) -> dict[str, str]:
    """The convolutions that the deployed head needs and that a normalisation layer follows, and
    that layer: in our networks the two are neighbours in the same module."""
    parts = ("E", "K", "V") if net.deployed_head == "joint" else ("E", "K")
    found = {}
    for name, module in net.named_modules():
        for (one, first), (other, second) in pairwise(module.named_children()):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d | nn.GroupNorm):
                found[f"{name}.{one}"] = f"{name}.{other}"
    return {layer: norm for layer, norm in found.items() if part_of(layer) in parts}
