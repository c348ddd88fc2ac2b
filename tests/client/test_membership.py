import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot
from torch.nn import functional

from foul.data import ClientData, to_float
from foul.federation.messages import Request


@pytest.mark.parametrize("head", ["joint", "causal"])
def test_each_samples_loss_of_the_deployed_head(
    make_net: MakeNet, make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...], head: str
) -> None:
    net, client = make_net(seed=4, head=head), tiny_clients[1]
    request = Request(client.id, "membership", 0, snapshot(net), {"splits": ["train", "test"]})
    reply = make_worker(head=head).perform(request)
    assert reply.error == ""
    assert reply.tensors == {}
    assert set(reply.numbers) == {"train", "test"}
    for split in ("train", "test"):
        samples = getattr(client, split)
        images, labels = samples.batch(torch.arange(len(samples)))
        with torch.no_grad():
            loss = functional.cross_entropy(net.eval()(to_float(images)), labels, reduction="none")
        assert reply.numbers[split] == pytest.approx(loss.tolist(), rel=1e-4, abs=1e-6)
