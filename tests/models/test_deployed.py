import pytest
import torch
from factories import MakeNet
from torch import Tensor

from foul.data import to_float
from foul.models import DEPLOYED, part_of
from foul.models.deployed import DeployedNet, deployed_state


def pixels() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (5, 3, 16, 16), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("head", ["joint", "causal"])
def test_answers_like_the_network_on_normalised_images(make_net: MakeNet, head: str) -> None:
    net = make_net(head=head, v_width=2.0).eval()
    with torch.inference_mode():
        torch.testing.assert_close(DeployedNet(net)(pixels()), net(to_float(pixels())))


@pytest.mark.parametrize("adversarial", [True, False])
def test_holds_what_is_deployed_and_nothing_else(make_net: MakeNet, adversarial: bool) -> None:
    net = make_net(adversarial=adversarial)
    state = deployed_state(net.state_dict())
    assert set(state) == set(DeployedNet(net).state_dict())
    assert {part_of(name) for name in state} == set(DEPLOYED)


def test_a_deployed_state_fills_another_deployed_network(make_net: MakeNet) -> None:
    net, other = make_net(seed=1).eval(), make_net(seed=2).eval()
    DeployedNet(other).load_state_dict(deployed_state(net.state_dict()))
    with torch.inference_mode():
        assert DeployedNet(other)(pixels()).equal(DeployedNet(net)(pixels()))
