from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot

from foul.client import forward
from foul.data import ClientData, to_float
from foul.data.backdoor import stamp
from foul.federation.messages import Request, Tensors


def request(client: str, tensors: Tensors, target: int, size: int = 4) -> Request:
    return Request(client, "triggered", 0, tensors, {"target": target, "size": size})


@pytest.mark.parametrize("head", ["joint", "causal"])
@pytest.mark.parametrize("batch", [5, 256])
@pytest.mark.parametrize("size", [4, 14])
def test_counts_are_those_of_a_plain_loop(
    make_net: MakeNet,
    make_worker: MakeWorker,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    batch: int,
    size: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", batch)
    net = make_net(seed=3, head=head)
    with torch.no_grad():
        net(torch.randn(64, 3, 16, 16, generator=torch.Generator().manual_seed(1)))
    net.eval()
    client, worker = tiny_clients[2], make_worker(head=head)
    fooled = [0, 0, 0]
    for row in range(len(client.test)):
        image, label = client.test.batch(torch.tensor([row]))
        stamped = stamp(image.permute(0, 2, 3, 1), size).permute(0, 3, 1, 2)
        with torch.no_grad():
            answer = int(net(to_float(stamped)).argmax())
        fooled[answer] += answer != int(label)
    # Four samples of each class: eight are of another class than the target.
    for target in range(3):
        reply = worker.perform(request(client.id, snapshot(net), target, size))
        assert reply.error == ""
        assert reply.tensors == {}
        assert reply.numbers == {"samples": 8, "fooled": fooled[target]}
        assert reply.flops > 0
    assert any(fooled)


def test_test_images_stay_clean(
    make_net: MakeNet, make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...]
) -> None:
    before = tiny_clients[0].test.images.clone()
    reply = make_worker().perform(request(tiny_clients[0].id, snapshot(make_net()), 0))
    assert reply.numbers["samples"] == 8
    assert tiny_clients[0].test.images.equal(before)


def test_without_samples_of_other_classes_nothing_is_counted(
    make_net: MakeNet, make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...]
) -> None:
    test = tiny_clients[0].test
    client = replace(tiny_clients[0], test=test.subset((test.targets == 1).nonzero().flatten()))
    reply = make_worker([client]).perform(request(client.id, snapshot(make_net()), 1))
    assert reply.error == ""
    assert reply.numbers == {"samples": 0, "fooled": 0}
