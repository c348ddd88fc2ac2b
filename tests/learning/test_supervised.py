import pytest
import torch
from factories import (
    MakeNet,
    MakeWorker,
    changed_parts,
    learn_request,
    learning,
    snapshot,
)
from torch.nn import functional

from foul.data import ClientData, to_float
from foul.learning.supervised import Supervised
from foul.models import part_of

CONFIG = learning(objective="supervised")


def test_trains_what_is_deployed_and_nothing_else(
    make_worker: MakeWorker, make_net: MakeNet
) -> None:
    sent = snapshot(make_net(adversarial=True))
    reply = make_worker(adversarial=True).perform(learn_request("north-0", sent, CONFIG))
    assert reply.error == ""
    assert changed_parts(sent, reply.tensors) == {"E", "K", "V", "xi", "head"}
    assert set(Supervised().parts(CONFIG)) == {"E", "K", "V", "xi", "head"}


def test_a_client_answers_what_it_was_sent(make_worker: MakeWorker, make_net: MakeNet) -> None:
    sent = {n: t for n, t in snapshot(make_net()).items() if part_of(n) in ("E", "K", "V")}
    reply = make_worker().perform(learn_request("north-0", sent, CONFIG))
    assert list(reply.tensors) == list(sent)


def test_losses_are_both_heads_cross_entropies(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    net = make_net().eval()
    stored, labels = tiny_clients[0].train.batch(torch.arange(27))
    images = to_float(stored)
    (phase,) = Supervised().phases(net, CONFIG, lambda purpose, device: torch.Generator())
    terms = phase.loss(images, labels)
    z_k = net.K(net.E(images))
    torch.testing.assert_close(terms["joint"], functional.cross_entropy(net(images), labels))
    torch.testing.assert_close(
        terms["gtc"], functional.cross_entropy(net.causal_logits(z_k), labels)
    )
    # xi listens to K without teaching it.
    weights = list(net.K.parameters())
    assert not any(
        gradient is not None
        for gradient in torch.autograd.grad(
            terms["gtc"], weights, allow_unused=True, retain_graph=True
        )
    )
    gradients = torch.autograd.grad(terms["joint"], weights, allow_unused=True)
    assert any(gradient is not None and gradient.any() for gradient in gradients)


def test_phase_has_the_configured_epochs_and_rate(make_net: MakeNet) -> None:
    config = learning(objective="supervised", supervised={"epochs": 0.5, "rate": 0.3})
    (phase,) = Supervised().phases(make_net(), config, lambda purpose, device: torch.Generator())
    assert (phase.epochs, phase.rate) == (0.5, 0.3)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_learns(make_worker: MakeWorker, make_net: MakeNet, norm: str) -> None:
    worker, tensors = make_worker(norm=norm), snapshot(make_net(norm=norm))
    losses = []
    for number in range(1, 7):
        reply = worker.perform(learn_request("north-0", tensors, CONFIG, round=number))
        tensors = reply.tensors
        losses.append(reply.numbers["losses"]["supervised/joint"])
    assert losses[-1] < 0.5 * losses[0]
