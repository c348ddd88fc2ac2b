import re

import pytest
import torch
from factories import NO_FEATURES, MakeNet, same_bits, snapshot

from foul.client.context import TaskContext
from foul.client.flops import FlopMeter
from foul.data import ClientData
from foul.federation.messages import Tensors
from foul.models import DisentangledNet


@pytest.fixture
def net(make_net: MakeNet) -> DisentangledNet:
    return make_net()


def context(client: ClientData, net: DisentangledNet, tensors: Tensors) -> TaskContext:
    return TaskContext(client, net, torch.device("cpu"), FlopMeter(), NO_FEATURES, 1, tensors, {})


def test_loading_copies_what_was_sent_and_leaves_the_rest(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    before = snapshot(net)
    sent = {name: t for name, t in snapshot(make_net(seed=5)).items() if name.startswith("K.")}
    originals = {name: tensor.clone() for name, tensor in sent.items()}
    context(tiny_clients[0], net, sent).load()
    assert same_bits(snapshot(net), before | sent)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1)
    assert same_bits(sent, originals)


@pytest.mark.parametrize(
    ("name", "shape", "have"),
    [
        ("xi.bias", (4,), "(3,)"),
        ("xi.bias", (), "(3,)"),
        ("xi.bias", (1, 3), "(3,)"),
        ("nothing.weight", (3,), "no such tensor"),
    ],
)
def test_what_does_not_fit_is_named(
    net: DisentangledNet,
    tiny_clients: tuple[ClientData, ...],
    name: str,
    shape: tuple[int, ...],
    have: str,
) -> None:
    message = f"the server sent '{name}' {shape}, this client has {have}"
    with pytest.raises(ValueError, match=re.escape(message)):
        context(tiny_clients[0], net, {name: torch.zeros(shape)}).load()


def test_the_state_is_a_plain_copy(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    before = snapshot(net)
    state = context(tiny_clients[0], net, {}).state({"E.conv1.weight": torch.zeros(0)})
    (weight,) = state.values()
    assert weight.is_contiguous()
    assert not weight.requires_grad
    weight.fill_(9.0)
    assert same_bits(snapshot(net), before)
