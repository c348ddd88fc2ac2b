"""Residual backbones as data: a stem, then stages. ResNet-18/50 use torchvision's tensor names."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


def conv1x1(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1, bias=False)


Norm = Callable[[int], nn.Module]
"""Makes the normalisation layer of so many channels."""


def group_norm(channels: int) -> nn.Module:
    """Groups of 4 to 8 channels; no statistics to average, so domains cannot disturb each other."""
    return nn.GroupNorm(max(1, channels // (8 if channels % 8 == 0 else 4)), channels)


NORMS: dict[str, Norm] = {"batch": nn.BatchNorm2d, "group": group_norm}


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (ResNet-18)."""

    expansion = 1

    def __init__(self, inputs: int, channels: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = conv3x3(inputs, channels, stride)
        self.bn1 = norm(channels)
        self.conv2 = conv3x3(channels, channels)
        self.bn2 = norm(channels)
        self.stride = stride
        self.downsample = shortcut(inputs, channels, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu_(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return torch.relu_(out.add_(residual(self, x)))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions and a shortcut (ResNet-50; the stride sits on the 3x3)."""

    expansion = 4

    def __init__(self, inputs: int, channels: int, stride: int, norm: Norm) -> None:
        super().__init__()
        outputs = channels * self.expansion
        self.conv1 = conv1x1(inputs, channels)
        self.bn1 = norm(channels)
        self.conv2 = conv3x3(channels, channels, stride)
        self.bn2 = norm(channels)
        self.conv3 = conv1x1(channels, outputs)
        self.bn3 = norm(outputs)
        self.stride = stride
        self.downsample = shortcut(inputs, outputs, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu_(self.bn1(self.conv1(x)))
        out = torch.relu_(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return torch.relu_(out.add_(residual(self, x)))


def shortcut(inputs: int, outputs: int, stride: int, norm: Norm) -> nn.Sequential | None:
    """A projection where the shapes differ, nothing where they agree."""
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(conv1x1(inputs, outputs), norm(outputs))


def residual(block: BasicBlock | Bottleneck, x: Tensor) -> Tensor:
    """The shortcut's side of a block.

    The stride is taken by slicing: the same numbers as a strided 1x1 convolution, whose
    channels-last gradient writes out of bounds for some channel counts (4, 8, 12) with torch 2.13
    on a CPU.
    """
    if block.downsample is None:
        return x
    return block.downsample(x[:, :, :: block.stride, :: block.stride])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Stage:
    """`blocks` residual blocks of `channels`; the first one has the stride."""

    channels: int
    blocks: int
    stride: int


@dataclass(frozen=True)
class Backbone:
    """The shape of a residual network, without its weights."""

    block: type[BasicBlock] | type[Bottleneck]
    stem: Literal["imagenet", "small"]
    stem_channels: int
    stages: tuple[Stage, ...]

    def stem_layers(self, width: float, norm: Norm) -> OrderedDict[str, nn.Module]:
        """`conv1`, `bn1`, `relu` (and `maxpool` for large images), as torchvision names them."""
        channels = scaled(self.stem_channels, width)
        if self.stem == "small":
            layers: list[tuple[str, nn.Module]] = [
                ("conv1", nn.Conv2d(3, channels, 5, 2, 2, bias=False))
            ]
        else:
            layers = [("conv1", nn.Conv2d(3, channels, 7, 2, 3, bias=False))]
        layers += [("bn1", norm(channels)), ("relu", nn.ReLU(inplace=True))]
        if self.stem == "imagenet":
            layers.append(("maxpool", nn.MaxPool2d(3, 2, 1)))
        return OrderedDict(layers)

    def stage_layers(
        self, first: int, last: int, inputs: int, width: float, norm: Norm
    ) -> tuple[OrderedDict[str, nn.Module], int]:
        """Stages `first`+1 .. `last` as `layerN` modules, and their number of output channels."""
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number in range(first, last):
            stage = self.stages[number]
            channels = scaled(stage.channels, width)
            blocks = []
            for position in range(stage.blocks):
                stride = stage.stride if position == 0 else 1
                blocks.append(self.block(inputs, channels, stride, norm))
                inputs = channels * self.block.expansion
            layers[f"layer{number + 1}"] = nn.Sequential(*blocks)
        return layers, inputs


def scaled(channels: int, width: float) -> int:
    """Channels at this width, a multiple of 4 so that vector units stay full."""
    return max(4, 4 * round(channels * width / 4))


BACKBONES: dict[str, Backbone] = {
    "resnet18": Backbone(
        BasicBlock,
        "imagenet",
        64,
        (Stage(64, 2, 1), Stage(128, 2, 2), Stage(256, 2, 2), Stage(512, 2, 2)),
    ),
    "resnet50": Backbone(
        Bottleneck,
        "imagenet",
        64,
        (Stage(64, 3, 1), Stage(128, 4, 2), Stage(256, 6, 2), Stage(512, 3, 2)),
    ),
    # For images of about 28 to 32 pixels: no pooling in the stem, three light stages.
    "small": Backbone(BasicBlock, "small", 16, (Stage(24, 1, 2), Stage(48, 1, 2), Stage(96, 1, 1))),
    # For tests: thousands of parameters.
    "tiny": Backbone(BasicBlock, "small", 4, (Stage(8, 1, 2), Stage(8, 1, 1))),
}


class ResNet(nn.Sequential):
    """A plain classifier with torchvision's tensor names (`conv1` ... `layer4` ... `fc`)."""

    def __init__(self, backbone: Backbone, classes: int, width: float = 1.0) -> None:
        norm = NORMS["batch"]
        layers = backbone.stem_layers(width, norm)
        stages, outputs = backbone.stage_layers(
            0, len(backbone.stages), scaled(backbone.stem_channels, width), width, norm
        )
        layers.update(stages)
        layers.update(avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten())
        layers["fc"] = nn.Linear(outputs, classes)
        super().__init__(layers)


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """He initialisation where a ReLU follows, unit gain where the output is used as it is."""
    for layer in module.modules():
        if not isinstance(layer, nn.Conv2d | nn.Linear):
            continue
        if layer.bias is None:
            nn.init.kaiming_normal_(
                layer.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
        else:
            bound = layer.weight[0].numel() ** -0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.zeros_(layer.bias)
