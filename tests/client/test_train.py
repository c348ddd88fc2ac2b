from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import MakeNet, changed_parts, same_bits, snapshot
from torch import Tensor, nn

from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.data.batches import shuffled_batches
from foul.federation.messages import Reply, Request, Tensors, join_groups
from foul.learning.losses import bounded_unlearning_loss, classification_loss
from foul.models import DEPLOYED, DisentangledNet, deployed_state, part_of
from foul.seeds import torch_generator

LOSSES = {"cross_entropy": classification_loss, "bounded": bounded_unlearning_loss}


@pytest.fixture
def worker(net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> Worker:
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(seed=9, norm=norm))


def settings(**values: object) -> dict[str, Any]:
    return {
        "loss": "cross_entropy",
        "parts": list(DEPLOYED),
        "epochs": 1.0,
        "rate": 0.05,
        "learning": {"batch_size": 8, "momentum": 0.9, "weight_decay": 0.01},
        "seed": 0,
        **values,
    }


def ask(
    worker: Worker, net: DisentangledNet, client: str = "east-0", round: int = 1, **values: object
) -> Reply:
    """Keywords `teacher` and `mask` are tensors, all others are settings."""
    groups = {"model": deployed_state(snapshot(net))}
    for group in ("teacher", "mask"):
        tensors = values.pop(group, None)
        if isinstance(tensors, dict):
            groups[group] = tensors
    return worker.perform(Request(client, "train", round, join_groups(groups), settings(**values)))


def trained(
    net: DisentangledNet, client: ClientData, loss: str, parts: tuple[str, ...], labels: Tensor
) -> Tensors:
    """The same training written out: SGD with momentum and decay, clipped gradients."""
    start = snapshot(net)
    net.train()
    chosen = [p for name, p in net.named_parameters() if part_of(name) in parts]
    optimiser = torch.optim.SGD(chosen, 0.05, 0.9, weight_decay=0.01)
    order = torch_generator(0, f"shuffle/train/{loss}", 1, client.id, "cpu")
    for rows in shuffled_batches(len(client.train), 8, order):
        images, _ = client.train.batch(rows)
        optimiser.zero_grad()
        torch.autograd.backward(LOSSES[loss](net(to_float(images)), labels[rows]))
        nn.utils.clip_grad_norm_([p for p in chosen if p.grad is not None], 5.0)
        optimiser.step()
    end = snapshot(net)
    return {name: end[name] - tensor for name, tensor in start.items() if part_of(name) in parts}


@pytest.mark.parametrize("loss", ["cross_entropy", "bounded"])
@pytest.mark.parametrize("parts", [DEPLOYED, ("V", "head")])
def test_the_change_is_that_of_sgd(
    net: DisentangledNet,
    worker: Worker,
    tiny_clients: tuple[ClientData, ...],
    loss: str,
    parts: tuple[str, ...],
) -> None:
    client = tiny_clients[0]
    reply = ask(worker, net, client.id, loss=loss, parts=list(parts))
    assert reply.error == ""
    expected = trained(net, client, loss, parts, client.train.targets)
    assert reply.tensors.keys() == expected.keys()
    for name, change in expected.items():
        torch.testing.assert_close(reply.tensors[name], change, rtol=2e-3, atol=5e-6)
    # Everything that is trained has moved, but for what the deployed head does not need.
    unmoved = {name for name, change in reply.tensors.items() if not bool(change.any())}
    assert {name.split(".")[1] for name in unmoved if not name.startswith("xi.")} <= {"logvar"}


def test_the_reply_has_statistics_samples_and_losses(net: DisentangledNet, worker: Worker) -> None:
    reply = ask(worker, net)
    buffers = {name for name in reply.tensors if "running" in name or "num_batches" in name}
    assert buffers == {
        name for name in deployed_state(snapshot(net)) if name not in dict(net.named_parameters())
    }
    for name in buffers:
        if name.endswith("num_batches_tracked"):
            # 27 samples in batches of 8.
            assert int(reply.tensors[name]) == 4
        else:
            assert bool(reply.tensors[name].any())
    assert reply.numbers["samples"] == 27
    assert set(reply.numbers["losses"]) == {"train/cross_entropy/cross_entropy"}
    assert reply.numbers["losses"]["train/cross_entropy/cross_entropy"] > 0


def test_what_was_sent_stays_and_other_parts_are_not_answered(
    net: DisentangledNet, worker: Worker
) -> None:
    sent = join_groups({"model": deployed_state(snapshot(net))})
    before = {name: tensor.clone() for name, tensor in sent.items()}
    request = Request("east-0", "train", 1, sent, settings(parts=["V"]))
    reply = worker.perform(request)
    assert same_bits(sent, before)
    assert {part_of(name) for name in reply.tensors} == {"V"}
    # The live network holds the rest as it was sent.
    live = snapshot(worker._net)
    assert changed_parts(snapshot(net), deployed_state(live)) == {"V"} | {
        # Statistics of the parts in front of it follow the data, too.
        part_of(name)
        for name in live
        if "running" in name and part_of(name) in DEPLOYED
    }


def test_rounds_and_clients_have_batches_of_their_own(net: DisentangledNet, worker: Worker) -> None:
    first = ask(worker, net)
    assert same_bits(ask(worker, net).tensors, first.tensors)
    assert not same_bits(ask(worker, net, round=2).tensors, first.tensors)
    assert not same_bits(ask(worker, net, client="east-1").tensors, first.tensors)


@pytest.mark.parametrize(("least", "steps"), [(1, 2), (3, 3), (7, 7)])
def test_at_least_so_many_steps(
    net: DisentangledNet, worker: Worker, least: int, steps: int
) -> None:
    """Half an epoch of 27 samples in batches of 8 is two steps; a whole one is four."""
    reply = ask(worker, net, epochs=0.5, min_steps=least)
    assert same_bits(reply.tensors, ask(worker, net, epochs=steps / 4).tensors)
    assert not same_bits(reply.tensors, ask(worker, net, epochs=(steps + 1) / 4).tensors)


# Masks


@pytest.mark.parametrize("form", ["whole", "channels"])
def test_what_is_masked_does_not_change(net: DisentangledNet, worker: Worker, form: str) -> None:
    """Not by gradients, momentum or weight decay."""
    weight = net.state_dict()["E.conv1.weight"]
    keep = torch.tensor([True, False, True, False]).view(4, 1, 1, 1)
    mask = {
        "E.conv1.weight": keep if form == "channels" else keep.expand_as(weight).contiguous(),
        "head.bias": torch.zeros(3),
    }
    reply = ask(worker, net, mask=mask)
    assert reply.error == ""
    assert not bool(reply.tensors["E.conv1.weight"][1::2].any())
    assert bool((reply.tensors["E.conv1.weight"][::2] != 0).all())
    assert not bool(reply.tensors["head.bias"].any())
    assert bool(reply.tensors["head.weight"].any())


def test_a_mask_of_ones_masks_nothing(net: DisentangledNet, worker: Worker) -> None:
    mask = {"E.conv1.weight": torch.ones(4, 1, 1, 1)}
    masked, free = ask(worker, net, mask=mask), ask(worker, net)
    assert same_bits(masked.tensors, free.tensors)


# Teachers


def relabelled(client: ClientData) -> ClientData:
    """The same images under other labels."""
    wrong = replace(client.train, labels=(client.train.labels + 1) % 3)
    assert not wrong.targets.equal(client.train.targets)
    return replace(client, train=wrong)


def test_the_teachers_answers_are_the_labels(
    net: DisentangledNet,
    worker: Worker,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
) -> None:
    client = tiny_clients[0]
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    teacher = make_net(seed=5, norm=norm).eval()
    reply = ask(worker, net, client.id, teacher=deployed_state(snapshot(teacher)))
    assert reply.error == ""
    images, own = client.train.batch(torch.arange(27))
    with torch.no_grad():
        labels = teacher(to_float(images)).argmax(1)
    assert not labels.equal(own)
    expected = trained(net, client, "cross_entropy", DEPLOYED, labels)
    for name, change in expected.items():
        torch.testing.assert_close(reply.tensors[name], change, rtol=2e-3, atol=5e-6)


def test_with_a_teacher_own_labels_are_not_looked_at(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0].id
    other = Worker([relabelled(tiny_clients[0])], worker._net)
    teacher = deployed_state(snapshot(net))
    one, same = (ask(of, net, client, teacher=teacher) for of in (worker, other))
    assert one.error == ""
    assert same_bits(one.tensors, same.tensors)
    assert one.numbers == same.numbers
    # The test would notice: without a teacher they do matter.
    assert not same_bits(ask(worker, net, client).tensors, ask(other, net, client).tensors)


# Fresh batches and ternary steps


def test_fresh_batches_are_drawn_from_all_samples_each_time(
    net: DisentangledNet, worker: Worker
) -> None:
    fresh, epoch = ask(worker, net, fresh=True), ask(worker, net, fresh=False)
    assert same_bits(epoch.tensors, ask(worker, net).tensors)
    assert not same_bits(fresh.tensors, epoch.tensors)
    assert same_bits(fresh.tensors, ask(worker, net, fresh=True).tensors)
    # Four steps; none of them is the smaller rest of an epoch.
    longer = ask(worker, net, fresh=True, epochs=1.25)
    assert not same_bits(longer.tensors, fresh.tensors)


def test_ternary_steps_are_multiples_of_the_rate(net: DisentangledNet, worker: Worker) -> None:
    reply = ask(worker, net, tau=0.5, sigma=0.1, rate=2.0**-7)
    names = {name for name, _ in net.named_parameters()} & reply.tensors.keys()
    steps = torch.cat([reply.tensors[name].flatten() for name in sorted(names)]) * 2**7
    torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-4)
    assert set(steps.round().tolist()) <= set(range(-4, 5))
    assert {-1, 0, 1} <= set(steps.round().tolist())


# Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "joy"}, "joy"),
        ({"learning": {"momentum": 2}}, "momentum"),
        ({"learning": {"speed": 2}}, "speed"),
        ({"tau": 0.5}, "sigma"),
        ({"teacher": {"V.banana": torch.zeros(1)}}, "V.banana"),
        ({"mask": {"head.bias": torch.zeros(2)}}, "size"),
    ],
)
def test_what_cannot_be_done_is_a_reply_that_says_so(
    net: DisentangledNet, worker: Worker, change: dict[str, Any], message: str
) -> None:
    reply = ask(worker, net, **change)
    assert message in reply.error
    assert reply.tensors == {}
    # The worker is still good.
    assert ask(worker, net).error == ""


def test_a_client_without_training_samples_answers_why(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...]
) -> None:
    empty = replace(tiny_clients[0], train=tiny_clients[0].train.subset([]))
    assert "no training samples" in ask(Worker([empty], worker._net), net, empty.id).error
