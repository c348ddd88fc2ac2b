from collections.abc import Callable, Sequence

import pytest
import torch
from factories import (
    MakeNet,
    MakeWorker,
    changed_parts,
    learn_request,
    learning,
    same_bits,
    snapshot,
)
from torch import Tensor, nn

from foul.config.schema import L2UConfig
from foul.data import ClientData, to_float, to_unit
from foul.learning.l2u import L2U, generator_terms, mid_terms
from foul.learning.losses import (
    classification_loss,
    fooling_loss,
    prototype_loss,
    reconstruction_loss,
    variance_loss,
)
from foul.models import DisentangledNet, Gaussian

Batch = tuple[Tensor, Tensor]


def draw(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def batch(tiny_clients: tuple[ClientData, ...]) -> Batch:
    images, labels = tiny_clients[0].train.batch(torch.arange(27))
    return to_float(images), labels


@pytest.fixture
def net(make_net: MakeNet) -> DisentangledNet:
    """A network in eval mode, so that asking it twice gives the same answer."""
    return make_net(adversarial=True).eval()


def moved_by(loss: Tensor, net: DisentangledNet) -> set[str]:
    """The parts that would move if this loss were descended."""
    parts = set()
    for name, module in net.parts().items():
        weights = list(module.parameters())
        gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        if any(gradient is not None and bool(gradient.any()) for gradient in gradients):
            parts.add(name)
    return parts


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        ("mid_epochs", {"E", "K", "V", "D"}),
        ("generator_epochs", {"E", "K", "V", "xi", "head"}),
        (None, {"E", "K", "V", "D", "xi", "head"}),
    ],
)
@pytest.mark.parametrize("evidence", [True, False])
def test_each_phase_changes_its_parts_only(
    make_worker: MakeWorker, make_net: MakeNet, off: str | None, expected: set[str], evidence: bool
) -> None:
    sent = snapshot(make_net(adversarial=True))
    config = learning(l2u={"evidence": evidence} | ({off: 0} if off else {}))
    reply = make_worker(adversarial=True).perform(learn_request("north-0", sent, config))
    assert reply.error == ""
    assert changed_parts(sent, reply.tensors) == expected


def test_generator_terms_are_their_losses(net: DisentangledNet, batch: Batch) -> None:
    images, labels = batch
    options = L2UConfig(alpha_rec=2, alpha_k=3, alpha_v=4, kl_weight=0.5, temperature=0.7)
    terms = generator_terms(net, images, labels, options, draw())
    features = net.E(images)
    k, v = net.K.distribution(features), net.V.distribution(features)
    noise = draw()
    z_k, z_v = k.sample(noise), v.sample(noise)
    mean, logvar = torch.cat([k.mean, v.mean], 1), torch.cat([k.logvar, v.logvar], 1)
    drawn = net.D(torch.cat([z_k, z_v], 1))
    expected = {
        "rec": 2 * reconstruction_loss(to_unit(images), drawn, mean, logvar, 0.5),
        "k": 3 * prototype_loss(z_k, labels, 0.7),
        "v": 4 * variance_loss(z_v, labels),
    }
    assert terms.keys() == expected.keys()
    for name, term in terms.items():
        torch.testing.assert_close(term, expected[name])


def test_the_generator_draws_the_image_itself(
    net: DisentangledNet, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is the image in [0, 1], not the normalised one, which no sigmoid reaches."""
    monkeypatch.setattr(net, "reconstruct", lambda z_k, z_v: to_unit(batch[0]))
    terms = generator_terms(net, *batch, L2UConfig(kl_weight=0), draw())
    assert terms["rec"].item() == 0.0


def test_generator_losses_reach_their_parts(net: DisentangledNet, batch: Batch) -> None:
    terms = generator_terms(net, *batch, L2UConfig(variance_form="per_dimension"), draw())
    assert moved_by(terms["rec"], net) == {"E", "K", "V", "D"}
    assert moved_by(terms["k"], net) == {"E", "K"}
    assert moved_by(terms["v"], net) == {"E", "V"}


def test_mid_terms_are_their_losses(net: DisentangledNet, batch: Batch) -> None:
    images, labels = batch
    options = L2UConfig(alpha_gtc=2, alpha_k=3, alpha_joint=4, temperature=0.7, evidence=False)
    terms = mid_terms(net, images, labels, options, draw())
    z_k = net.K(net.E(images))
    expected = {
        "gtc": 2 * classification_loss(net.causal_logits(z_k), labels),
        "k": 3 * prototype_loss(z_k, labels, 0.7),
        "joint": 4 * classification_loss(net(images), labels),
    }
    assert terms.keys() == expected.keys()
    for name, term in terms.items():
        torch.testing.assert_close(term, expected[name])


@pytest.mark.parametrize(
    ("evidence", "joint"), [(True, {"V", "head"}), (False, {"E", "K", "V", "head"})]
)
def test_evidence_keeps_the_joint_head_from_teaching_k(
    net: DisentangledNet, batch: Batch, evidence: bool, joint: set[str]
) -> None:
    terms = mid_terms(net, *batch, L2UConfig(evidence=evidence), draw())
    assert moved_by(terms["joint"], net) == joint
    assert moved_by(terms["gtc"], net) == {"E", "K", "xi"}
    assert moved_by(terms["k"], net) == {"E", "K"}


@pytest.mark.parametrize("evidence", [True, False])
def test_without_its_own_losses_k_stands_still_under_evidence(
    make_worker: MakeWorker, make_net: MakeNet, evidence: bool
) -> None:
    sent = snapshot(make_net(norm="group"))
    config = learning(
        weight_decay=0.0,
        l2u={"alpha_gtc": 0, "alpha_k": 0, "generator_epochs": 0, "evidence": evidence},
    )
    reply = make_worker(norm="group").perform(learn_request("north-0", sent, config))
    expected = {"V", "head"} if evidence else {"E", "K", "V", "head"}
    assert changed_parts(sent, reply.tensors) == expected


def head_input(net: DisentangledNet, act: Callable[[], object]) -> Tensor:
    """What the joint head was shown."""
    seen: list[Tensor] = []

    def look(module: nn.Module, inputs: Sequence[Tensor]) -> None:
        seen.append(inputs[0].detach())

    handle = net.head.register_forward_pre_hook(look)
    act()
    handle.remove()
    (shown,) = seen
    return shown


def test_half_of_the_samples_answer_without_k(net: DisentangledNet) -> None:
    images, labels = torch.randn(400, 3, 16, 16, generator=draw()), torch.arange(400) % 3
    with torch.no_grad():
        shown = head_input(net, lambda: mid_terms(net, images, labels, L2UConfig(), draw()))
        z_k = net.K(net.E(images)).flatten(1)
        z_v = net.V(net.E(images)).flatten(1)
    dropped = (shown[:, :64] == 0).all(1)
    assert 150 < int(dropped.sum()) < 250
    torch.testing.assert_close(shown[~dropped, :64], z_k[~dropped])
    torch.testing.assert_close(shown[:, 64:], z_v)


def test_the_mask_touches_the_joint_term_only(net: DisentangledNet, batch: Batch) -> None:
    one, other = (mid_terms(net, *batch, L2UConfig(), draw(seed)) for seed in (0, 1))
    assert one["gtc"].equal(other["gtc"])
    assert one["k"].equal(other["k"])
    assert not one["joint"].equal(other["joint"])


def test_without_evidence_mid_is_a_function_of_the_weights(
    net: DisentangledNet, batch: Batch
) -> None:
    options = L2UConfig(evidence=False)
    one, other = (mid_terms(net, *batch, options, draw(seed)) for seed in (0, 1))
    assert all(one[name].equal(other[name]) for name in one)


def test_latents_are_sampled_in_the_generator_phase_only(
    net: DisentangledNet, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, again, other = (
        generator_terms(net, *batch, L2UConfig(), draw(seed)) for seed in (0, 0, 1)
    )
    assert one["rec"].equal(again["rec"])
    assert not one["rec"].equal(other["rec"])

    def refuse(self: Gaussian, generator: torch.Generator) -> Tensor:
        raise AssertionError("sampled")

    monkeypatch.setattr(Gaussian, "sample", refuse)
    mid_terms(net, *batch, L2UConfig(alpha_adv=1.0), draw())
    net(batch[0])
    with pytest.raises(AssertionError, match="sampled"):
        generator_terms(net, *batch, L2UConfig(), draw())


def test_the_adversarial_pair_is_off_unless_asked_for(net: DisentangledNet, batch: Batch) -> None:
    assert "psi" not in L2U().parts(learning())
    assert mid_terms(net, *batch, L2UConfig(), draw()).keys() == {"gtc", "k", "joint"}


def test_the_adversarial_pair_works_against_each_other(net: DisentangledNet, batch: Batch) -> None:
    images, labels = batch
    terms = mid_terms(net, images, labels, L2UConfig(alpha_adv=2.0, eta_adv=3.0), draw())
    logits = net.psi(net.K(net.E(images)).flatten(1))
    torch.testing.assert_close(terms["adv"], 2 * classification_loss(logits, labels))
    torch.testing.assert_close(terms["psi"], 3 * fooling_loss(logits, labels))
    assert moved_by(terms["adv"], net) == {"E", "K"}
    assert moved_by(terms["psi"], net) == {"psi"}


def test_the_adversarial_head_travels_and_learns(
    make_worker: MakeWorker, make_net: MakeNet
) -> None:
    sent = snapshot(make_net(adversarial=True))
    config = learning(l2u={"alpha_adv": 0.1})
    assert set(L2U().parts(config)) == {"E", "K", "V", "D", "xi", "head", "psi"}
    reply = make_worker(adversarial=True).perform(learn_request("north-0", sent, config))
    assert changed_parts(sent, reply.tensors) == {"E", "K", "V", "D", "xi", "head", "psi"}


def test_phases_have_their_own_epochs_rates_and_parts(net: DisentangledNet) -> None:
    config = learning(
        l2u={"generator_epochs": 2, "generator_rate": 0.3, "mid_epochs": 0.5, "mid_rate": 0.7}
    )
    phases = L2U().phases(net, config, lambda purpose, device: draw())
    assert [(p.name, p.epochs, p.rate) for p in phases] == [
        ("generator", 2, 0.3),
        ("mid", 0.5, 0.7),
    ]
    assert set(phases[0].parts) == {"E", "K", "V", "D"}
    assert set(phases[1].parts) == {"E", "K", "V", "xi", "head"}


def test_each_round_has_its_own_randomness(make_worker: MakeWorker, make_net: MakeNet) -> None:
    sent = snapshot(make_net())
    worker = make_worker()
    one, again, other = (
        worker.perform(learn_request("north-0", sent, round=number)) for number in (1, 1, 2)
    )
    assert same_bits(one.tensors, again.tensors)
    assert not same_bits(one.tensors, other.tensors)


def test_local_training_descends_what_it_should(make_worker: MakeWorker, make_net: MakeNet) -> None:
    worker, tensors = make_worker(), snapshot(make_net())
    config = learning(l2u={"generator_rate": 0.3})
    first: dict[str, float] = {}
    for number in range(1, 9):
        reply = worker.perform(learn_request("north-0", tensors, config, round=number))
        tensors, losses = reply.tensors, reply.numbers["losses"]
        first = first or losses
    assert losses["mid/gtc"] < 0.5 * first["mid/gtc"]
    assert losses["mid/joint"] < 0.7 * first["mid/joint"]
    assert losses["generator/rec"] < 0.9 * first["generator/rec"]
    assert losses["mid/k"] < first["mid/k"]
