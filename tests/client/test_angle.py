from dataclasses import replace

import pytest
import torch
from factories import MakeNet, learn_request, same_bits, snapshot
from torch.nn import functional

from foul.client.worker import Worker
from foul.data import ClientData, Samples, to_float
from foul.federation.messages import Reply, Request, Tensors, join_groups
from foul.models import DisentangledNet, deployed_state, part_of


@pytest.fixture
def worker(net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> Worker:
    """Its live network has other weights than `net`."""
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(seed=0, norm=norm))


def ask(
    worker: Worker, net: DisentangledNet, step: Tensors, client: str, samples: int = 64
) -> Reply:
    sent = join_groups({"model": deployed_state(snapshot(net)), "step": step})
    return worker.perform(Request(client, "angle", 1, sent, {"samples": samples}))


def gradients(net: DisentangledNet, samples: Samples, rows: list[int]) -> Tensors:
    """Of the mean cross-entropy of these samples, for the parameters that it depends on."""
    images, labels = samples.batch(torch.tensor(rows))
    named = {n: p.requires_grad_() for n, p in net.named_parameters()}
    loss = functional.cross_entropy(net(to_float(images)), labels)
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {n: g.clone() for n, g in zip(named, found, strict=True) if g is not None}


def cosine(one: Tensors, other: Tensors) -> float:
    flat = [
        torch.cat([tensors[name].flatten().double() for name in sorted(one)])
        for tensors in (one, other)
    ]
    return float(functional.cosine_similarity(flat[0], flat[1], dim=0))


def scaled(tensors: Tensors, factor: float) -> Tensors:
    return {name: factor * tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("parts", [("V",), ("V", "head"), ("E", "K", "V", "head")])
def test_the_cosine_is_that_of_plain_autograd(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    parts: tuple[str, ...],
) -> None:
    generator = torch.Generator().manual_seed(0)
    told = set()
    for client in tiny_clients[:3]:
        way = gradients(net, client.train, list(range(27)))
        way = {name: -tensor for name, tensor in way.items() if part_of(name) in parts}
        step = {
            name: tensor + torch.randn(tensor.shape, generator=generator) * tensor.std()
            if tensor.numel() > 1
            else tensor
            for name, tensor in way.items()
        }
        reply = ask(worker, net, step, client.id)
        assert (reply.error, reply.tensors) == ("", {})
        assert set(reply.numbers) == {"cosine"}
        expected = cosine(way, step)
        assert 0.1 < expected < 0.99
        assert reply.numbers["cosine"] == pytest.approx(expected, abs=1e-3)
        told.add(round(expected, 6))
    assert len(told) == 3


@pytest.mark.parametrize(("factor", "expected"), [(-0.01, 1), (-100.0, 1), (0.01, -1), (7.0, -1)])
def test_down_the_gradient_is_one_and_up_is_minus_one(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    factor: float,
    expected: int,
) -> None:
    client = tiny_clients[0]
    step = scaled(gradients(net, client.train, list(range(27))), factor)
    reply = ask(worker, net, step, client.id)
    assert reply.numbers["cosine"] == pytest.approx(expected, abs=1e-4)


def test_samples_are_spread_evenly(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    step = scaled(gradients(net, client.train, [0, 6, 13, 20]), -1)
    assert ask(worker, net, step, client.id, 4).numbers["cosine"] == pytest.approx(1, abs=1e-4)
    assert ask(worker, net, step, client.id, 27).numbers["cosine"] < 0.999


def test_only_the_tensors_of_the_step_count(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    way = scaled(gradients(net, client.train, list(range(27))), -1)
    only_v = {name: tensor for name, tensor in way.items() if part_of(name) == "V"}
    assert ask(worker, net, only_v, client.id).numbers["cosine"] == pytest.approx(1, abs=1e-4)
    # A head that goes elsewhere is part of the angle.
    elsewhere = only_v | {n: -t for n, t in way.items() if part_of(n) == "head"}
    expected = cosine({name: way[name] for name in elsewhere}, elsewhere)
    assert expected < 0.99
    told = ask(worker, net, elsewhere, client.id).numbers["cosine"]
    assert told == pytest.approx(expected, abs=1e-3)


def test_nothing_has_no_direction(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    still = scaled(gradients(net, client.train, [0]), 0)
    assert ask(worker, net, still, client.id).numbers == {"cosine": None}
    empty = replace(client, train=client.train.subset([]))
    moved = {name: tensor + 1 for name, tensor in still.items()}
    assert ask(Worker([empty], worker._net), net, moved, client.id).numbers == {"cosine": None}


def test_a_step_that_the_deployed_head_does_not_see(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    net = make_net(seed=3, head="causal").eval()
    worker = Worker(tiny_clients, make_net(seed=0, head="causal"))
    step = {n: torch.ones_like(p) for n, p in net.named_parameters() if part_of(n) == "V"}
    reply = ask(worker, net, step, "east-0")
    assert (reply.error, reply.numbers) == ("", {"cosine": None})
    # Beside others it takes part with a gradient of zero.
    both = step | {n: torch.ones_like(p) for n, p in net.named_parameters() if part_of(n) == "xi"}
    client = next(client for client in tiny_clients if client.id == "east-0")
    way = scaled(gradients(net, client.train, list(range(27))), -1)
    expected = cosine({n: way.get(n, torch.zeros_like(t)) for n, t in both.items()}, both)
    assert ask(worker, net, both, "east-0").numbers["cosine"] == pytest.approx(expected, abs=1e-3)


def test_the_live_network_learns_afterwards_as_if_nothing_had_been_asked(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    request = learn_request("east-0", snapshot(net))
    expected = Worker(tiny_clients, make_net(seed=0, norm=norm)).perform(request)
    worker = Worker(tiny_clients, make_net(seed=0, norm=norm))
    step = {n: torch.ones_like(p) for n, p in net.named_parameters() if part_of(n) == "head"}
    assert ask(worker, net, step, "east-0").numbers["cosine"] is not None
    found = worker.perform(request)
    assert found.error == expected.error == ""
    assert same_bits(found.tensors, expected.tensors)


def test_flops_are_counted(net: DisentangledNet, worker: Worker) -> None:
    step = {n: torch.ones_like(p) for n, p in net.named_parameters() if part_of(n) == "V"}
    few, many = (ask(worker, net, step, "east-0", samples).flops for samples in (3, 24))
    assert many == 8 * few > 0
