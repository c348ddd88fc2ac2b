from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet
from frozen_workers import frozen_worker, settings, unlearning
from torch.nn import functional

from foul.client.symmetric import unpack
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.federation.messages import Reply, Request, Tensors, join_groups
from foul.models import DisentangledNet

WEIGHTS = ["V.layer2.0.conv1.weight", "head.weight"]


def ask(worker: Worker, client: str, scope: Tensors, **values: Any) -> Reply:
    asked = {"frozen": "key", "session": "session", "weights": WEIGHTS, "samples": 99, **values}
    return worker.perform(Request(client, "inputs", 1, join_groups({"scope": scope}), asked))


@pytest.mark.parametrize(("samples", "count"), [(5, 5), (99, 27)])
def test_a_change_of_weights_costs_what_the_moments_say(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    samples: int,
    count: int,
) -> None:
    """The mean of |D x|^2 is tr(D C D^T), for what a layer with weights D really answers."""
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    reply = ask(worker, client.id, scope, samples=samples)
    assert (reply.error, reply.numbers) == ("", {"samples": count})
    moments = unpack(reply.tensors)
    assert list(moments) == WEIGHTS
    images, _ = client.train.batch(torch.arange(count) * 27 // count)
    net.eval()
    with torch.no_grad():
        features = net.E(to_float(images))
        codes = torch.cat([net.K(features).flatten(1), net.V(features).flatten(1)], 1)
        for name in WEIGHTS:
            weight = dict(net.named_parameters())[name]
            change = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
            if name == "head.weight":
                answers = functional.linear(codes, change)
            else:
                answers = functional.conv2d(features, change, padding=1)
            flat = change.flatten(1)
            told = torch.trace(flat @ moments[name] @ flat.T)
            assert float(told) == pytest.approx(float(answers.square().sum(1).mean()), rel=2e-3)


def test_the_scope_of_the_round_is_enough(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    sent = ask(worker, client.id, scope)
    assert "scope of round 1 is not here" in ask(worker, client.id, {}).error
    worker.perform(unlearning(client.id, 1, scope, settings(stepwise=True)))
    held = ask(worker, client.id, {})
    assert held.error == ""
    assert all(held.tensors[name].equal(sent.tensors[name]) for name in sent.tensors)
    assert held.flops > 0
