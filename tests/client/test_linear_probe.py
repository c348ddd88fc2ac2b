from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from factories import MakeNet, snapshot
from numpy.typing import NDArray

from foul.client import forward
from foul.client.worker import Worker
from foul.data import ClientData, Samples, to_float
from foul.federation.messages import Reply, Request, Tensors
from foul.models import DisentangledNet

Matrix = NDArray[np.float64]


def latents(net: DisentangledNet, samples: Samples, part: str) -> tuple[Matrix, list[int]]:
    """Codes of one image at a time, with a 1 behind them, and labels."""
    rows, labels = [], []
    for row in range(len(samples)):
        image, label = samples.batch(torch.tensor([row]))
        with torch.no_grad():
            features = net.E(to_float(image))
            z = net.K(features) if part == "K" else net.V(features)
        rows.append([*z.double().flatten().tolist(), 1.0])
        labels.append(int(label))
    return np.array(rows), labels


@pytest.fixture
def worker(net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> Worker:
    """Its live network has other weights than `net`."""
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(seed=0, norm=norm))


def ask(worker: Worker, name: str, sent: Tensors, client: str, **settings: Any) -> Reply:
    return worker.perform(Request(client, name, 0, sent, settings))


@pytest.mark.parametrize("part", ["K", "V"])
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("batch", [5, 256])
def test_sums_are_those_of_the_codes(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    split: str,
    batch: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", batch)
    client = tiny_clients[3]
    reply = ask(worker, "moments", snapshot(net), client.id, part=part, split=split)
    assert reply.error == ""
    codes, labels = latents(net, getattr(client, split), part)
    targets = np.array([[float(label == c) for c in range(3)] for label in labels])
    assert reply.numbers == {"samples": len(labels)}
    assert reply.tensors.keys() == {"gram", "cross"}
    np.testing.assert_allclose(reply.tensors["gram"].numpy(), codes.T @ codes, atol=1e-4)
    np.testing.assert_allclose(reply.tensors["cross"].numpy(), codes.T @ targets, atol=1e-4)
    # The constant counts samples, altogether and in each class.
    assert reply.tensors["gram"][-1, -1] == len(labels)
    assert reply.tensors["cross"][-1].tolist() == [labels.count(c) for c in range(3)]
    assert reply.flops > 0


@pytest.mark.parametrize("part", ["K", "V"])
def test_answers_of_the_map_are_counted(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...], part: str
) -> None:
    counted: set[int] = set()
    for client in tiny_clients[:3]:
        codes, labels = latents(net, client.test, part)
        generator = torch.Generator().manual_seed(len(counted))
        probe = torch.randn(codes.shape[1], 3, generator=generator, dtype=torch.float64)
        sent = snapshot(net) | {"probe": probe}
        reply = ask(worker, "probed", sent, client.id, part=part, split="test")
        assert (reply.error, reply.tensors) == ("", {})
        answers = (codes @ probe.numpy()).argmax(1).tolist()
        correct = sum(a == b for a, b in zip(answers, labels, strict=True))
        assert reply.numbers == {"samples": 12, "correct": correct}
        counted.add(correct)
    assert counted != {0}


@pytest.mark.parametrize("name", ["moments", "probed"])
def test_what_was_sent_stays_as_it_is(net: DisentangledNet, worker: Worker, name: str) -> None:
    sent = snapshot(net)
    codes = int(
        ask(worker, "moments", sent, "east-0", part="K", split="test").tensors["gram"].shape[0]
    )
    if name == "probed":
        sent["probe"] = torch.ones(codes, 3, dtype=torch.float64)
    before = {key: tensor.clone() for key, tensor in sent.items()}
    for client in ("east-0", "east-1"):
        # In one process, all clients get the very same dict.
        assert ask(worker, name, sent, client, part="K", split="test").error == ""
    assert list(sent) == list(before)
    assert all(torch.equal(sent[key], before[key]) for key in before)


def test_clients_add_up(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    halves = [
        replace(client, id=f"half-{n}", train=client.train.subset(list(range(n, 27, 2))))
        for n in range(2)
    ]
    other = Worker(halves, worker._net)
    settings = {"part": "K", "split": "train"}
    whole = ask(worker, "moments", snapshot(net), client.id, **settings).tensors
    parts = [ask(other, "moments", snapshot(net), half.id, **settings).tensors for half in halves]
    for name in ("gram", "cross"):
        torch.testing.assert_close(parts[0][name] + parts[1][name], whole[name], atol=1e-4, rtol=0)


def test_a_part_without_latents_is_a_reply_that_says_so(
    net: DisentangledNet, worker: Worker
) -> None:
    assert "'E'" in ask(worker, "moments", snapshot(net), "east-0", part="E", split="test").error


# Telling domains instead of classes


@pytest.mark.parametrize("part", ["K", "V"])
def test_the_target_can_be_the_domain(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...], part: str
) -> None:
    domains = sorted({client.domain for client in tiny_clients})
    # Four domains and three classes: one cannot be taken for the other.
    assert len(domains) == 4
    for client in tiny_clients[::3]:
        settings = {"part": part, "split": "train", "domains": domains}
        reply = ask(worker, "moments", snapshot(net), client.id, **settings)
        assert reply.error == ""
        codes, _ = latents(net, client.train, part)
        targets = np.zeros((len(codes), 4))
        targets[:, domains.index(client.domain)] = 1
        np.testing.assert_allclose(reply.tensors["gram"].numpy(), codes.T @ codes, atol=1e-4)
        np.testing.assert_allclose(reply.tensors["cross"].numpy(), codes.T @ targets, atol=1e-4)


def test_answers_about_the_domain_are_counted(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    domains = sorted({client.domain for client in tiny_clients})
    width = latents(net, tiny_clients[0].test, "K")[0].shape[1]
    for place, domain in enumerate(domains):
        # The constant alone speaks, for one domain.
        probe = torch.zeros(width, 4, dtype=torch.float64)
        probe[-1, place] = 1
        for client in tiny_clients:
            settings = {"part": "K", "split": "test", "domains": domains}
            reply = ask(worker, "probed", snapshot(net) | {"probe": probe}, client.id, **settings)
            correct = 12 if client.domain == domain else 0
            assert reply.numbers == {"samples": 12, "correct": correct}


def test_a_client_without_samples_answers_with_zeros(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    empty = replace(tiny_clients[0], test=tiny_clients[0].test.subset([]))
    other = Worker([empty], worker._net)
    for extra, columns in (({}, 3), ({"domains": ["east", empty.domain]}, 2)):
        reply = ask(other, "moments", snapshot(net), empty.id, part="V", split="test", **extra)
        assert (reply.error, reply.numbers) == ("", {"samples": 0})
        assert reply.tensors["cross"].shape[1] == columns
        assert not any(bool(tensor.any()) for tensor in reply.tensors.values())


def test_a_domain_that_is_not_listed_is_a_reply_that_says_so(
    net: DisentangledNet, worker: Worker
) -> None:
    settings = {"part": "K", "split": "test", "domains": ["north", "west"]}
    assert "ValueError" in ask(worker, "moments", snapshot(net), "east-0", **settings).error
