from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot
from torch import Tensor
from torch.nn import functional

from foul.client import forward
from foul.client.evaluate import hits
from foul.data import ClientData, Samples, to_float
from foul.federation.messages import Numbers, Request, Tensors
from foul.models import DisentangledNet

SPLITS = ["train", "validation", "test"]


@pytest.fixture
def sent(make_net: MakeNet) -> Tensors:
    """A network that answers differently for different images."""
    net = make_net(seed=2)
    net(torch.randn(64, 3, 16, 16))
    return snapshot(net)


def loop(net: DisentangledNet, samples: Samples, head: str) -> Numbers:
    """One image at a time, with plain counting."""
    correct = causal = 0
    loss = 0.0
    with torch.no_grad():
        for row in range(len(samples)):
            image, label = samples.batch(torch.tensor([row]))
            z_k = net.K(net.E(to_float(image)))
            by_k = net.xi(z_k.flatten(1))[0]
            logits = by_k if head == "causal" else net(to_float(image))[0]
            correct += int(logits.argmax()) == int(label)
            causal += int(by_k.argmax()) == int(label)
            loss -= float(functional.log_softmax(logits, 0)[label])
    return {"samples": len(samples), "correct": correct, "causal_correct": causal, "loss": loss}


@pytest.mark.parametrize("head", ["joint", "causal"])
@pytest.mark.parametrize("batch", [5, 256])
def test_counts_are_those_of_a_plain_loop(
    make_worker: MakeWorker,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    sent: Tensors,
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    batch: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", batch)
    net = make_net(head=head).eval()
    net.load_state_dict(sent)
    worker = make_worker(head=head)
    for client in tiny_clients[:2]:
        reply = worker.perform(Request(client.id, "evaluate", 0, sent, {"splits": SPLITS}))
        assert reply.error == ""
        assert reply.tensors == {}
        for split in SPLITS:
            expected = loop(net, getattr(client, split), head)
            assert reply.numbers[split] == expected | {
                "loss": pytest.approx(expected["loss"], rel=1e-4)
            }


def test_an_empty_split_counts_nothing(
    make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...], sent: Tensors
) -> None:
    client = replace(tiny_clients[0], validation=tiny_clients[0].validation.subset([]))
    reply = make_worker([client]).perform(
        Request(client.id, "evaluate", 0, sent, {"splits": ["validation"]})
    )
    assert reply.numbers == {
        "validation": {"samples": 0, "correct": 0, "causal_correct": 0, "loss": 0.0}
    }


def test_only_the_asked_splits_are_scored(make_worker: MakeWorker, sent: Tensors) -> None:
    reply = make_worker().perform(Request("west-1", "evaluate", 0, sent, {"splits": ["test"]}))
    assert list(reply.numbers) == ["test"]


@pytest.mark.parametrize(
    ("logits", "expected"),
    [([[0.0, 1.0], [3.0, 2.0]], 1), ([[1.0, 0.0], [2.0, 3.0]], 1), ([[0.0, 1.0], [0.0, 1.0]], 2)],
)
def test_hits(logits: list[list[float]], expected: int) -> None:
    labels: Tensor = torch.tensor([1, 1])
    assert hits(torch.tensor(logits), labels) == expected
