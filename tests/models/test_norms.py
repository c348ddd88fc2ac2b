import pytest
from factories import MakeNet
from torch import nn

from foul.models import normalised


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize("backbone", ["tiny", "small", "resnet18", "resnet50"])
def test_every_convolution_has_its_norm_but_the_bottlenecks(
    make_net: MakeNet, backbone: str, norm: str
) -> None:
    net = make_net(backbone=backbone, norm=norm, width=0.25)
    found = normalised(net)
    convolutions = {
        name
        for name, module in net.named_modules()
        if isinstance(module, nn.Conv2d) and name.split(".")[0] in ("E", "K", "V")
    }
    assert convolutions - found.keys() == {"K.mean", "K.logvar", "V.mean", "V.logvar"}
    for layer, following in found.items():
        expected = layer.replace("conv", "bn").replace("downsample.0", "downsample.1")
        assert following == expected
        weights = (net.state_dict()[f"{name}.weight"] for name in (layer, following))
        assert len({len(weight) for weight in weights}) == 1


def test_a_head_that_does_not_read_v_leaves_v_alone(make_net: MakeNet) -> None:
    assert {name[0] for name in normalised(make_net(head="causal"))} == {"E", "K"}
    assert {name[0] for name in normalised(make_net())} == {"E", "K", "V"}
