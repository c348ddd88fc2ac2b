import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet, same_bits
from forget_cases import scope_of
from torch import nn

from foul.client.compress import decode
from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.data.batches import shuffled_batches
from foul.federation.messages import Request, Tensors
from foul.learning.losses import bounded_unlearning_loss, classification_loss
from foul.models import DisentangledNet
from foul.seeds import torch_generator

LOSSES = {"cross_entropy": classification_loss, "bounded": bounded_unlearning_loss}
Perform = Callable[..., Any]


@pytest.fixture(params=["group", "batch"])
def net(request: pytest.FixtureRequest, make_net: MakeNet) -> DisentangledNet:
    net = make_net(seed=3, norm=request.param)
    with torch.no_grad():
        net(torch.randn(64, 3, 16, 16, generator=torch.Generator().manual_seed(1)))
    return net.eval()


def settings(**values: object) -> dict[str, Any]:
    learning = {"batch_size": 8, "momentum": 0.9, "weight_decay": 0.0}
    return {
        "frozen": "key",
        "splits": ["train", "validation"],
        "scope": ["V", "head"],
        "loss": "cross_entropy",
        "epochs": 1.0,
        "rate": 0.05,
        "precision": "float32",
        "learning": learning,
        "seed": 0,
        **values,
    }


def split_scope(net: DisentangledNet, *parts: str) -> tuple[Tensors, Tensors]:
    """The parameters of these parts, and everything else."""
    state = {name: t.clone() for name, t in net.state_dict().items()}
    names = {name for name, _ in net.named_parameters()}
    scope = {n: t for n, t in scope_of(state, *parts).items() if n in names}
    return scope, {n: t for n, t in state.items() if n not in scope}


def frozen_worker(
    net: DisentangledNet, client: ClientData, store: Path, *parts: str, make_net: MakeNet
) -> tuple[Worker, Tensors]:
    """A worker that has kept the outputs, and whose live network has forgotten the rest."""
    scope, rest = split_scope(net, *parts)
    norm = "batch" if any("running" in name for name in rest) else "group"
    features = FeatureStore(store)
    first = Worker([client], make_net(norm=norm), features=features)
    reply = first.perform(Request(client.id, "freeze", 0, rest, settings()))
    assert reply.error == ""
    # As after a resume: another process, with a network that was never trained.
    return Worker([client], make_net(seed=9, norm=norm), features=features), scope


@pytest.mark.parametrize("loss", ["cross_entropy", "bounded"])
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
    reply = worker.perform(
        Request(client.id, "unlearn", 4, scope, settings(loss=loss, scope=list(parts)))
    )
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


def test_scores_are_those_of_the_received_model(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    reply = worker.perform(Request(client.id, "unlearn", 1, scope, settings()))
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
    full = worker.perform(Request(client.id, "unlearn", 1, scope, settings()))
    short = worker.perform(Request(client.id, "unlearn", 1, scope, settings(precision=precision)))
    assert short.bytes < 0.7 * full.bytes
    for name, delta in decode(short.tensors).items():
        limit = tolerance * full.tensors[name].abs().max() / (127 if precision == "int8" else 1)
        assert float((delta - full.tensors[name]).abs().max()) <= float(limit) + 1e-9


def test_rounds_are_independent_of_what_the_live_network_did(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", make_net=make_net)
    asked = Request(client.id, "unlearn", 1, scope, settings(scope=["V"]))
    first = worker.perform(asked)
    worker.perform(Request(client.id, "evaluate", 0, {}, {"splits": ["test"]}))
    worker.perform(Request(client.id, "unlearn", 2, scope, settings(scope=["V"], loss="bounded")))
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
    reply = worker.perform(Request(client.id, "unlearn", 1, scope, settings(**change)))
    assert message in reply.error
    assert reply.tensors == {}
