from dataclasses import replace

import pytest
import torch
from factories import MakeNet, same_bits, snapshot
from torch import nn

from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.federation.messages import Reply, Request, Tensors
from foul.models import DisentangledNet

LAYERS = ["E.conv1", "E.layer1.0.bn1", "K.layer2.0.conv2", "V.layer2.0.conv1"]


@pytest.fixture
def worker(net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> Worker:
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(norm=norm))


def ask(worker: Worker, sent: Tensors, client: str, layers: list[str]) -> Reply:
    return worker.perform(Request(client, "channels", 1, sent, {"layers": layers}))


def test_each_channel_is_the_mean_of_what_is_positive(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    reply = ask(worker, snapshot(net), client.id, LAYERS)
    assert reply.error == ""
    assert reply.numbers == {"samples": 27}
    assert list(reply.tensors) == LAYERS
    images = to_float(client.train.batch(torch.arange(27))[0])
    with torch.no_grad():
        first = net.E.get_submodule("conv1")(images)
        block = net.K.get_submodule("layer2.0")
        extracted = net.E(images)
        inner = torch.relu(block.get_submodule("bn1")(block.get_submodule("conv1")(extracted)))
        second = block.get_submodule("conv2")(inner)
    for name, maps in (("E.conv1", first), ("K.layer2.0.conv2", second)):
        expected = [
            sum(maps[:, channel].clamp(min=0).flatten().tolist()) / maps[:, channel].numel()
            for channel in range(maps.shape[1])
        ]
        torch.testing.assert_close(
            reply.tensors[name], torch.tensor(expected), rtol=1e-4, atol=1e-6
        )
    assert all(bool((t >= 0).all()) and bool(t.any()) for t in reply.tensors.values())


def test_the_network_is_in_evaluation_mode_and_stays_as_it_is(
    net: DisentangledNet, worker: Worker
) -> None:
    before = snapshot(worker._net)
    sent = snapshot(net)
    ask(worker, sent, "east-0", LAYERS)
    assert not worker._net.training
    assert same_bits(snapshot(worker._net), sent)
    assert not same_bits(before, sent)


def test_nobody_listens_afterwards(net: DisentangledNet, worker: Worker) -> None:
    first = ask(worker, snapshot(net), "east-0", LAYERS)
    assert "AttributeError" in ask(worker, snapshot(net), "east-0", ["E.conv1", "E.banana"]).error
    hooks = [module._forward_hooks for module in worker._net.modules()]
    assert not any(hooks)
    assert same_bits(ask(worker, snapshot(net), "east-0", LAYERS).tensors, first.tensors)


def test_the_answer_is_of_the_network_that_was_sent(net: DisentangledNet, worker: Worker) -> None:
    one = ask(worker, snapshot(net), "east-0", ["E.conv1"]).tensors["E.conv1"]
    with torch.no_grad():
        layer = net.E.get_submodule("conv1")
        assert isinstance(layer, nn.Conv2d)
        layer.weight[1] = 0
        layer.weight[2] *= 2
    other = ask(worker, snapshot(net), "east-0", ["E.conv1"]).tensors["E.conv1"]
    torch.testing.assert_close(other, one * torch.tensor([1.0, 0.0, 2.0, 1.0]))


def test_clients_add_up(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    sizes = (20, 7)
    halves = [
        replace(client, id=f"half-{n}", train=client.train.subset(list(rows)))
        for n, rows in enumerate((range(20), range(20, 27)))
    ]
    other = Worker(halves, worker._net)
    whole = ask(worker, snapshot(net), client.id, LAYERS).tensors
    parts = [ask(other, snapshot(net), half.id, LAYERS) for half in halves]
    assert [part.numbers["samples"] for part in parts] == list(sizes)
    for name in LAYERS:
        mean = sum(n * part.tensors[name] for n, part in zip(sizes, parts, strict=True)) / 27
        torch.testing.assert_close(mean, whole[name], rtol=1e-4, atol=1e-6)


def test_a_layer_that_the_deployed_head_does_not_need_is_a_reply_that_says_so(
    net: DisentangledNet, worker: Worker
) -> None:
    reply = ask(worker, snapshot(net), "east-0", ["E.conv1", "V.logvar"])
    assert "'V.logvar'" in reply.error
    assert reply.tensors == {}


def test_a_client_without_training_samples_answers_why(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    empty = replace(tiny_clients[0], train=tiny_clients[0].train.subset([]))
    reply = ask(Worker([empty], worker._net), snapshot(net), empty.id, LAYERS)
    assert "no training samples" in reply.error
