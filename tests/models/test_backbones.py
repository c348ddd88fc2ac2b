import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from foul.models import BACKBONES, ResNet
from foul.models.backbones import (
    NORMS,
    BasicBlock,
    Bottleneck,
    group_norm,
    initialise,
    scaled,
)

# Facts of torchvision 0.x's resnet18() and resnet50(), typed out: parameters, tensors, shapes.
PARAMETERS = {"resnet18": 11_689_512, "resnet50": 25_557_032}
TENSORS = {"resnet18": 122, "resnet50": 320}
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "resnet18": {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.num_batches_tracked": (),
        "layer1.0.conv1.weight": (64, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.running_mean": (128,),
        "layer3.1.conv2.weight": (256, 256, 3, 3),
        "layer4.1.bn2.running_var": (512,),
        "fc.weight": (1000, 512),
        "fc.bias": (1000,),
    },
    "resnet50": {
        "conv1.weight": (64, 3, 7, 7),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.2.conv3.weight": (256, 64, 1, 1),
        "layer2.0.conv2.weight": (128, 128, 3, 3),
        "layer3.5.bn3.bias": (1024,),
        "layer4.0.downsample.0.weight": (2048, 1024, 1, 1),
        "layer4.2.bn3.running_var": (2048,),
        "fc.weight": (1000, 2048),
    },
}


def torchvision_names(blocks: tuple[int, ...], convolutions: int, first: bool) -> set[str]:
    """Every name of such a state dict; `first` says whether layer1 has a projection."""

    def norm(name: str) -> list[str]:
        kinds = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
        return [f"{name}.{kind}" for kind in kinds]

    names = ["conv1.weight", *norm("bn1"), "fc.weight", "fc.bias"]
    for stage, count in enumerate(blocks, 1):
        for block in range(count):
            for number in range(1, convolutions + 1):
                names.append(f"layer{stage}.{block}.conv{number}.weight")
                names += norm(f"layer{stage}.{block}.bn{number}")
        if stage > 1 or first:
            names.append(f"layer{stage}.0.downsample.0.weight")
            names += norm(f"layer{stage}.0.downsample.1")
    return set(names)


NAMES = {
    "resnet18": torchvision_names((2, 2, 2, 2), 2, first=False),
    "resnet50": torchvision_names((3, 4, 6, 3), 3, first=True),
}


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_tensors_are_torchvisions(name: str) -> None:
    with torch.device("meta"):
        net = ResNet(BACKBONES[name], classes=1000)
    state = net.state_dict()
    assert set(state) == NAMES[name]
    assert len(state) == TENSORS[name]
    assert sum(parameter.numel() for parameter in net.parameters()) == PARAMETERS[name]
    for tensor, shape in SHAPES[name].items():
        assert state[tensor].shape == shape, tensor


def test_order_of_the_strides_is_torchvisions() -> None:
    """ResNet-50 has its stride on the 3x3 convolution (torchvision's v1.5)."""
    with torch.device("meta"):
        block = ResNet(BACKBONES["resnet50"], 10).get_submodule("layer2.0")
    strides = [layer.stride for layer in block.modules() if isinstance(layer, nn.Conv2d)]
    assert strides[:3] == [(1, 1), (2, 2), (1, 1)]


@pytest.mark.parametrize("name", list(BACKBONES))
def test_every_backbone_classifies(name: str) -> None:
    net = ResNet(BACKBONES[name], classes=5, width=0.25).eval()
    with torch.inference_mode():
        assert net(torch.rand(2, 3, 32, 32)).shape == (2, 5)


def strided_block(block: BasicBlock | Bottleneck, x: Tensor) -> Tensor:
    """The block as torchvision writes it, with a strided 1x1 convolution in its shortcut."""
    assert block.downsample is not None
    projection = block.downsample[0]
    assert isinstance(projection, nn.Conv2d)
    side = block.downsample[1](functional.conv2d(x, projection.weight, stride=block.stride))
    out = functional.relu(block.bn1(block.conv1(x)))
    out = block.bn2(block.conv2(out))
    if isinstance(block, Bottleneck):
        out = block.bn3(block.conv3(functional.relu(out)))
    result: Tensor = functional.relu(out + side)
    return result


@pytest.mark.parametrize("kind", [BasicBlock, Bottleneck])
@pytest.mark.parametrize("size", [1, 6, 7])
def test_slicing_equals_a_strided_convolution(
    kind: type[BasicBlock] | type[Bottleneck], size: int
) -> None:
    block = kind(5, 8, 2, NORMS["batch"]).double()
    x = torch.rand(3, 5, size, size, dtype=torch.float64, requires_grad=True)
    ours, theirs = block(x), strided_block(block, x)
    torch.testing.assert_close(ours, theirs)
    weights = [x, *block.parameters()]
    upstream = torch.rand_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, weights, upstream),
        torch.autograd.grad(theirs, weights, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


def test_a_block_leaves_its_input_alone() -> None:
    """Its additions are in place: they must not reach what it was given."""
    block = BasicBlock(4, 4, 1, NORMS["batch"]).eval()
    x = torch.randn(2, 4, 5, 5)
    before = x.clone()
    with torch.no_grad():
        block(x)
    assert x.equal(before)


@pytest.mark.parametrize(
    ("channels", "width", "expected"),
    [(64, 1.0, 64), (64, 0.75, 48), (64, 0.25, 16), (24, 0.7, 16), (64, 0.001, 4), (8, 2.0, 16)],
)
def test_scaled_channels_are_multiples_of_four(channels: int, width: float, expected: int) -> None:
    assert scaled(channels, width) == expected


@pytest.mark.parametrize(("channels", "groups"), [(4, 1), (8, 1), (12, 3), (16, 2), (20, 5)])
def test_groups_hold_four_to_eight_channels(channels: int, groups: int) -> None:
    norm = group_norm(channels)
    assert isinstance(norm, nn.GroupNorm)
    assert norm.num_groups == groups


def test_initialisation_draws_from_its_generator_alone() -> None:
    def fresh(seed: int) -> Tensor:
        net = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.Conv2d(4, 2, 1))
        initialise(net, torch.Generator().manual_seed(seed))
        return nn.utils.parameters_to_vector(net.parameters())

    assert fresh(1).equal(fresh(1))
    assert not fresh(1).equal(fresh(2))


def test_initialisation_has_he_spread_and_no_bias() -> None:
    inner, last = nn.Conv2d(64, 64, 3, bias=False), nn.Linear(100, 50)
    initialise(nn.Sequential(inner, last), torch.Generator().manual_seed(0))
    assert inner.weight.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)
    assert last.weight.abs().max().item() == pytest.approx(0.1, rel=0.01)
    assert (last.bias == 0).all()
