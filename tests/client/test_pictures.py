from dataclasses import replace

import pytest
import torch
from factories import MakeNet, snapshot
from torch import Tensor

from foul.client import forward
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.federation.messages import Reply, Request
from foul.models import DisentangledNet


@pytest.fixture
def worker(net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> Worker:
    """Its live network has other weights than `net`."""
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(seed=0, norm=norm))


def ask(worker: Worker, task: str, net: DisentangledNet, client: str, samples: int) -> Reply:
    return worker.perform(Request(client, task, 0, snapshot(net), {"samples": samples}))


def codes(net: DisentangledNet, images: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        features = net.E(to_float(images))
        return net.K(features), net.V(features)


def spread(samples: int) -> Tensor:
    """Positions of so many of 12 samples."""
    return torch.tensor([position * 12 // samples for position in range(samples)])


@pytest.mark.parametrize("samples", [1, 5, 12, 99])
def test_pictures_are_those_of_the_decoder(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    samples: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", 4)
    client = tiny_clients[2]
    reply = ask(worker, "reconstruct", net, client.id, samples)
    assert (reply.error, reply.numbers) == ("", {})
    assert set(reply.tensors) == {"original", "both", "k_only", "v_only"}
    images, _ = client.test.batch(spread(min(samples, 12)))
    assert reply.tensors["original"].equal(images.permute(0, 2, 3, 1))
    z_k, z_v = codes(net, images)
    made = {
        "both": (z_k, z_v),
        "k_only": (z_k, torch.zeros_like(z_v)),
        "v_only": (torch.zeros_like(z_k), z_v),
    }
    for name, pair in made.items():
        with torch.no_grad():
            expected = 255 * net.reconstruct(*pair).permute(0, 2, 3, 1)
        found = reply.tensors[name]
        assert (found.dtype, found.shape) == (torch.uint8, images.permute(0, 2, 3, 1).shape)
        assert float((found - expected).abs().max()) <= 0.51
    # The three are not the same picture.
    assert not reply.tensors["both"].equal(reply.tensors["k_only"])
    assert not reply.tensors["k_only"].equal(reply.tensors["v_only"])


@pytest.mark.parametrize("samples", [5, 99])
def test_latents_are_those_of_the_encoders(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    samples: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", 4)
    client = tiny_clients[2]
    reply = ask(worker, "latents", net, client.id, samples)
    assert (reply.error, reply.numbers) == ("", {})
    assert set(reply.tensors) == {"k", "v", "class"}
    images, labels = client.test.batch(spread(min(samples, 12)))
    z_k, z_v = codes(net, images)
    torch.testing.assert_close(reply.tensors["k"], z_k.flatten(1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(reply.tensors["v"], z_v.flatten(1), atol=1e-4, rtol=1e-4)
    assert reply.tensors["class"].equal(labels)


@pytest.mark.parametrize("task", ["reconstruct", "latents"])
def test_a_client_without_test_samples_shows_nothing(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...], task: str
) -> None:
    empty = replace(tiny_clients[0], test=tiny_clients[0].test.subset([]))
    reply = ask(Worker([empty], worker._net), task, net, empty.id, 5)
    full = ask(worker, task, net, tiny_clients[0].id, 5)
    assert reply.error == ""
    for name, tensor in full.tensors.items():
        assert reply.tensors[name].shape == (0, *tensor.shape[1:])
        assert reply.tensors[name].dtype == tensor.dtype
