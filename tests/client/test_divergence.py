import math
from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot

from foul.data import ClientData, Samples, to_float
from foul.federation.messages import Request, Tensors, join_groups
from foul.models import DisentangledNet, deployed_state

SPLITS = ["train", "test"]


def sent(reference: DisentangledNet, model: DisentangledNet) -> Tensors:
    return join_groups(
        {
            "reference": deployed_state(snapshot(reference)),
            "model": deployed_state(snapshot(model)),
        }
    )


def probabilities(net: DisentangledNet, samples: Samples, row: int) -> list[float]:
    image, _ = samples.batch(torch.tensor([row]))
    with torch.no_grad():
        logits = net(to_float(image))[0].tolist()
    powers = [math.exp(value) for value in logits]
    return [power / sum(powers) for power in powers]


def kl(one: list[float], other: list[float]) -> float:
    return sum(p * math.log(p / q) for p, q in zip(one, other, strict=True))


@pytest.fixture
def nets(make_net: MakeNet) -> tuple[DisentangledNet, DisentangledNet]:
    """Two networks with BatchNorm whose statistics differ, too."""
    pair = make_net(seed=1, norm="batch"), make_net(seed=2, norm="batch")
    for number, net in enumerate(pair):
        with torch.no_grad():
            generator = torch.Generator().manual_seed(number)
            net(torch.randn(64, 3, 16, 16, generator=generator))
        net.eval()
    return pair


def test_sums_are_those_of_the_formula(
    nets: tuple[DisentangledNet, DisentangledNet],
    make_worker: MakeWorker,
    tiny_clients: tuple[ClientData, ...],
) -> None:
    worker, (reference, model) = make_worker(norm="batch"), nets
    for client in tiny_clients[:2]:
        request = Request(client.id, "divergence", 0, sent(reference, model), {"splits": SPLITS})
        reply = worker.perform(request)
        assert (reply.error, reply.tensors) == ("", {})
        assert set(reply.numbers) == set(SPLITS)
        for split in SPLITS:
            samples = getattr(client, split)
            expected = sum(
                kl(probabilities(reference, samples, row), probabilities(model, samples, row))
                for row in range(len(samples))
            )
            assert expected > 0
            assert reply.numbers[split]["samples"] == len(samples)
            assert reply.numbers[split]["kl"] == pytest.approx(expected, rel=1e-4)


def test_it_is_the_references_view(
    nets: tuple[DisentangledNet, DisentangledNet],
    make_worker: MakeWorker,
    tiny_clients: tuple[ClientData, ...],
) -> None:
    """KL is not symmetric: what Retrain deems likely counts."""
    worker, test = make_worker(norm="batch"), tiny_clients[0].test
    for one, other in (nets, nets[::-1]):
        request = Request(
            tiny_clients[0].id, "divergence", 0, sent(one, other), {"splits": ["test"]}
        )
        expected = sum(
            kl(probabilities(one, test, row), probabilities(other, test, row))
            for row in range(len(test))
        )
        assert worker.perform(request).numbers["test"]["kl"] == pytest.approx(expected, rel=1e-4)


def test_a_model_does_not_differ_from_itself(
    nets: tuple[DisentangledNet, DisentangledNet], make_worker: MakeWorker
) -> None:
    worker = make_worker(norm="batch")
    for net in nets:
        request = Request("east-0", "divergence", 0, sent(net, net), {"splits": SPLITS})
        assert worker.perform(request).numbers == {
            "train": {"samples": 27, "kl": 0.0},
            "test": {"samples": 12, "kl": 0.0},
        }


def test_what_was_asked_before_does_not_matter(
    nets: tuple[DisentangledNet, DisentangledNet], make_worker: MakeWorker
) -> None:
    one, other = nets
    settings = {"splits": ["test"]}
    there = Request("east-0", "divergence", 0, sent(one, other), settings)
    back = Request("east-0", "divergence", 0, sent(other, one), settings)
    worker = make_worker(norm="batch")
    first = worker.perform(there).numbers
    worker.perform(back)
    assert worker.perform(there).numbers == first
    assert worker.perform(back).numbers != first


def test_no_samples_do_not_differ(
    nets: tuple[DisentangledNet, DisentangledNet],
    make_worker: MakeWorker,
    tiny_clients: tuple[ClientData, ...],
) -> None:
    client = replace(tiny_clients[0], test=tiny_clients[0].test.subset([]))
    request = Request(client.id, "divergence", 0, sent(*nets), {"splits": ["test"]})
    reply = make_worker([client], norm="batch").perform(request)
    assert (reply.error, reply.numbers) == ("", {"test": {"samples": 0, "kl": 0.0}})
