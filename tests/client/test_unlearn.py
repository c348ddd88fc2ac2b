import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from factories import MakeNet, same_bits
from frozen_workers import frozen_worker, settings, unlearning
from torch import Tensor, nn

from foul.client.compress import decode, encode
from foul.client.features import FeatureStore
from foul.client.symmetric import pack
from foul.client.unlearn import stepping_aside
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.data.batches import shuffled_batches
from foul.federation.messages import Request, Tensors, added, join_groups
from foul.learning.losses import (
    bounded_unlearning_loss,
    classification_loss,
    levelling_loss,
    margins,
    weakest_loss,
)
from foul.models import DisentangledNet
from foul.seeds import torch_generator

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": classification_loss,
    "bounded": bounded_unlearning_loss,
    "weakest": lambda logits, labels: weakest_loss(logits, labels, 0.25, 2.0),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parts", [("V", "head"), ("V",), ("head",)])
def test_the_delta_is_that_of_training_on_top_of_the_frozen_network(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    loss: str,
    parts: tuple[str, ...],
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, *parts, make_net=make_net)
    asked = settings(loss=loss, aim=0.25, depth=2.0)
    reply = worker.perform(unlearning(client.id, 4, scope, asked))
    assert reply.error == ""
    assert reply.tensors.keys() == scope.keys()

    rows = shuffled_batches(
        27, 8, torch_generator(0, f"shuffle/unlearn/{loss}", 4, client.id, "cpu")
    )
    named = dict(net.named_parameters())
    chosen = [named[name] for name in named if name.split(".")[0] in parts]
    optimiser = torch.optim.SGD(chosen, 0.05, 0.9)
    for batch in rows:
        images, labels = client.train.batch(batch)
        optimiser.zero_grad()
        torch.autograd.backward(LOSSES[loss](net(to_float(images)), labels))
        nn.utils.clip_grad_norm_(chosen, 5.0)
        optimiser.step()
    moved = 0.0
    for name in scope:
        expected = named[name].detach() - scope[name]
        torch.testing.assert_close(reply.tensors[name], expected, rtol=1e-3, atol=2e-6)
        moved += float(expected.abs().sum())
    assert moved > 0


def test_levelling_adds_how_much_surer_training_samples_are_than_held_out_ones(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    chosen = settings(loss="bounded", level=2.0)
    reply = worker.perform(unlearning(client.id, 4, scope, chosen))
    plain = worker.perform(unlearning(client.id, 4, scope, {**chosen, "level": 0.0}))
    assert reply.error == plain.error == ""

    images, labels = client.validation.batch(torch.arange(len(client.validation)))
    with torch.no_grad():
        held_out = margins(net(to_float(images)), labels)
    named = {n: p for n, p in net.named_parameters() if n.split(".")[0] in ("V", "head")}
    optimiser, descended = torch.optim.SGD(named.values(), 0.05, 0.9), 0.0
    shuffle = torch_generator(0, "shuffle/unlearn/bounded", 4, client.id, "cpu")
    for batch in shuffled_batches(27, 8, shuffle):
        images, labels = client.train.batch(batch)
        optimiser.zero_grad()
        logits = net(to_float(images))
        level = levelling_loss(logits, labels, held_out)
        loss = bounded_unlearning_loss(logits, labels) + 2 * level
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(named.values(), 5.0)
        optimiser.step()
        descended += loss.item() * len(labels) / 27
    apart = 0.0
    for name in scope:
        expected = named[name].detach() - scope[name]
        torch.testing.assert_close(reply.tensors[name], expected, rtol=1e-3, atol=2e-6)
        apart += float((reply.tensors[name] - plain.tensors[name]).abs().sum())
    assert apart > 0
    assert reply.numbers["loss"] == pytest.approx(descended, rel=1e-3)


def test_without_held_out_samples_there_is_nothing_to_level_with(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = replace(tiny_clients[0], validation=tiny_clients[0].validation.subset([]))
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    levelled, plain = (
        worker.perform(unlearning(client.id, 1, scope, settings(loss="bounded", level=level)))
        for level in (1.0, 0.0)
    )
    assert levelled.error == ""
    assert levelled.numbers == plain.numbers
    assert same_bits(levelled.tensors, plain.tensors)


def test_scores_are_those_of_the_received_model(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    reply = worker.perform(unlearning(client.id, 1, scope, settings()))
    for split in ("train", "validation"):
        samples = getattr(client, split)
        images, labels = samples.batch(torch.arange(len(samples)))
        with torch.no_grad():
            logits = net(to_float(images))
            loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
        score = reply.numbers["scores"][split]
        assert score["samples"] == len(samples)
        assert score["correct"] == int((logits.argmax(1) == labels).sum())
        assert math.isclose(score["loss"], float(loss), rel_tol=1e-4)
    assert reply.numbers["samples"] == 27


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 2**-7), ("int8", 1.0)])
def test_fewer_bits_say_about_the_same(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    precision: str,
    tolerance: float,
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    full = worker.perform(unlearning(client.id, 1, scope, settings()))
    short = worker.perform(unlearning(client.id, 1, scope, settings(precision=precision)))
    assert short.bytes < 0.7 * full.bytes
    for name, delta in decode(short.tensors).items():
        limit = tolerance * full.tensors[name].abs().max() / (127 if precision == "int8" else 1)
        assert float((delta - full.tensors[name]).abs().max()) <= float(limit) + 1e-9


def test_rounds_are_independent_of_what_the_live_network_did(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", make_net=make_net)
    asked = unlearning(client.id, 1, scope, settings())
    first = worker.perform(asked)
    worker.perform(Request(client.id, "evaluate", 0, {}, {"splits": ["test"]}))
    worker.perform(unlearning(client.id, 2, scope, settings(loss="bounded")))
    assert same_bits(worker.perform(asked).tensors, first.tensors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frozen": "another"}, "the frozen parts are not here"),
        ({"splits": ["train", "test"]}, "for 'test' are not here"),
        ({"loss": "joy"}, "joy"),
    ],
)
def test_what_is_missing_is_a_reply_that_says_so(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    change: dict[str, object],
    message: str,
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    reply = worker.perform(unlearning(client.id, 1, scope, settings(**change)))
    assert message in reply.error
    assert reply.tensors == {}


def test_what_8_bits_lose_is_sent_in_the_next_rounds(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """Over all rounds only the last one's loss is missing, however many there were."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    told = {name: torch.zeros(t.shape, dtype=torch.float64) for name, t in scope.items()}
    true = {name: tensor.clone() for name, tensor in told.items()}
    plain = {name: tensor.clone() for name, tensor in told.items()}
    for number in range(1, 6):
        full = worker.perform(unlearning(client.id, number, scope, settings()))
        asked = unlearning(client.id, number, scope, settings(precision="int8"))
        short = worker.perform(asked)
        # A round that is done again is answered as before, and counts once.
        assert same_bits(worker.perform(asked).tensors, short.tensors)
        alone = settings(precision="int8", session=f"only-{number}")
        forgetful = worker.perform(unlearning(client.id, number, scope, alone))
        for name in scope:
            true[name] += full.tensors[name].double()
            told[name] += decode(short.tensors)[name].double()
            plain[name] += decode(forgetful.tensors)[name].double()
    lost = FeatureStore(tmp_path).kept(f"session-{client.id}", "lost", 5)
    assert lost is not None
    missing = 0.0
    for name in scope:
        torch.testing.assert_close(told[name] + lost[name], true[name], rtol=0, atol=1e-6)
        missing += float((plain[name] - true[name]).abs().sum())
    # Without feedback the losses of all rounds would add up.
    assert missing > 2 * sum(float(lost[name].abs().sum()) for name in scope)


def test_feedback_is_each_clients_and_each_sessions_own(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    one, other = tiny_clients[:2]
    worker, scope = frozen_worker(net, one, tmp_path, "V", "head", make_net=make_net)
    second, _ = frozen_worker(net, other, tmp_path, "V", "head", make_net=make_net)

    def reply(of: Worker, client: str, number: int, session: str) -> Tensors:
        asked = settings(precision="int8", session=session)
        return of.perform(unlearning(client, number, scope, asked)).tensors

    fresh = reply(worker, one.id, 2, "fresh")
    reply(second, other.id, 1, "a")
    assert same_bits(reply(worker, one.id, 2, "a"), fresh)
    reply(worker, one.id, 1, "b")
    assert same_bits(reply(worker, one.id, 2, "c"), fresh)
    assert not same_bits(reply(worker, one.id, 2, "b"), fresh)


@pytest.mark.parametrize(("least", "steps"), [(1, 2), (2, 2), (3, 3), (7, 7)])
def test_at_least_so_many_steps(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    least: int,
    steps: int,
) -> None:
    """Half an epoch of 27 samples in batches of 8 is two steps; a whole one is four."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    asked = settings(epochs=0.5, min_steps=least)
    reply = worker.perform(unlearning(client.id, 1, scope, asked))
    same = settings(epochs=steps / 4)
    assert same_bits(reply.tensors, worker.perform(unlearning(client.id, 1, scope, same)).tensors)
    fewer = settings(epochs=(steps - 1) / 4)
    assert not same_bits(
        reply.tensors, worker.perform(unlearning(client.id, 1, scope, fewer)).tensors
    )


@pytest.mark.parametrize(("least", "rate"), [(1, 0.02), (3, 0.03), (4, 0.04)])
def test_more_epochs_than_the_rate_is_meant_for_are_shorter_steps(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    least: int,
    rate: float,
) -> None:
    """A rate of 0.04 for half an epoch, which has two steps or so many as must be, goes as far in
    the four steps of a whole one."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    asked = settings(rate=0.04, rate_epochs=0.5, min_steps=least)
    reply = worker.perform(unlearning(client.id, 1, scope, asked))
    same = worker.perform(unlearning(client.id, 1, scope, settings(rate=rate)))
    assert same_bits(reply.tensors, same.tensors)


def move(scope: Tensors, seed: int) -> Tensors:
    """A random move of every tensor, in 8 bits."""
    generator = torch.Generator().manual_seed(seed)
    wanted = {n: 0.05 * torch.randn(t.shape, generator=generator) for n, t in scope.items()}
    return encode(wanted, "int8")


def test_who_holds_the_scope_needs_only_the_step(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """The deltas are those of a client that was sent the moved scope itself, round after round."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    held = settings(stepwise=True)
    worker.perform(unlearning(client.id, 1, scope, held))
    for number in (2, 3):
        step = move(scope, number)
        asked = Request(client.id, "unlearn", number, join_groups({"step": step}), held)
        scope = added(scope, decode(step))
        expected = worker.perform(unlearning(client.id, number, scope, settings()))
        # Asked twice, as after a resume, it moves once.
        for _ in range(2):
            reply = worker.perform(asked)
            assert reply.error == ""
            assert same_bits(reply.tensors, expected.tensors)
            assert reply.numbers == expected.numbers


@pytest.mark.parametrize(("first", "session"), [(1, "session"), (2, "another")])
def test_a_step_from_nowhere_is_refused(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    first: int,
    session: str,
) -> None:
    """It was away in the round before, or that was another attempt."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    worker.perform(unlearning(client.id, first, scope, settings(stepwise=True, session=session)))
    sent = join_groups({"step": move(scope, 1)})
    reply = worker.perform(Request(client.id, "unlearn", 3, sent, settings(stepwise=True)))
    assert "the scope of round 2 is not here" in reply.error


def matrices(scope: Tensors, *names: str) -> Tensors:
    """Projections past a random half of what these weights are multiplied with."""
    told = {}
    for name in names:
        size = scope[name].flatten(1).shape[1]
        basis = torch.linalg.qr(torch.randn(size, size, generator=torch.manual_seed(size))).Q
        told[name] = basis[:, : size // 2] @ basis[:, : size // 2].T
    return told


def test_who_steps_aside_moves_weights_where_it_is_led(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client, names = tiny_clients[0], ("V.layer2.0.conv1.weight", "head.weight")
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    led = matrices(scope, *names)
    asked = settings(loss="bounded", aside=True, epochs=0.25)
    tensors = join_groups({"scope": scope, "aside": pack(led)})
    reply = worker.perform(Request(client.id, "unlearn", 4, tensors, asked))
    assert reply.error == ""
    assert set(reply.tensors) == set(names)
    rows = next(
        iter(
            shuffled_batches(
                27, 8, torch_generator(0, "shuffle/unlearn/bounded", 4, client.id, "cpu")
            )
        )
    )
    images, labels = client.train.batch(rows)
    torch.autograd.backward(bounded_unlearning_loss(net(to_float(images)), labels))
    named = dict(net.named_parameters())
    gradients = {name: named[name].grad for name in names}
    steps = {n: (g.flatten(1) @ led[n]).view_as(g) for n, g in gradients.items() if g is not None}

    def length(of: Tensors) -> float:
        return math.sqrt(sum(float(t.square().sum()) for t in of.values()))

    whole = length({n: g for n, g in gradients.items() if g is not None}) / length(steps)
    for name in names:
        expected = -0.05 * whole * steps[name]
        torch.testing.assert_close(reply.tensors[name], expected, rtol=0.02, atol=2e-5)
    # Kept for the rounds in which only a step is sent; lost, it is said.
    again = worker.perform(unlearning(client.id, 5, scope, asked))
    assert again.error == ""
    assert set(again.tensors) == set(names)
    lost = worker.perform(unlearning(client.id, 5, scope, {**asked, "session": "other"}))
    assert "matrices" in lost.error


def test_where_nothing_is_left_to_descend_nobody_moves(net: DisentangledNet) -> None:
    weight = nn.Parameter(torch.ones(2, 3))
    weight.grad = torch.zeros(2, 3)
    stepping_aside({"a": torch.eye(3)})({"a": weight})
    assert weight.grad.equal(torch.zeros(2, 3))
