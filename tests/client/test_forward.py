from collections.abc import Mapping
from typing import Any

import pytest
import torch
from factories import NO_FEATURES
from torch import Tensor

from foul.client import forward as module
from foul.client.context import TaskContext
from foul.client.flops import FlopMeter
from foul.client.forward import forward
from foul.data import ClientData, to_float
from foul.models import DisentangledNet

NOTHING: Mapping[str, Any] = {}


@pytest.fixture
def context(net: DisentangledNet, tiny_clients: tuple[ClientData, ...]) -> TaskContext:
    cpu = torch.device("cpu")
    return TaskContext(tiny_clients[0], net, cpu, FlopMeter(), NO_FEATURES, 0, {}, NOTHING)


@pytest.mark.parametrize("batch", [1, 5, 27, 256])
def test_every_sample_once_and_in_order(
    context: TaskContext, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(module, "EVALUATION_BATCH", batch)
    train = context.data.train
    found = list(forward(context, train, "mean", lambda images: images.mean((1, 2, 3))))
    assert [len(labels) for _, labels in found][:-1] == [batch] * (len(found) - 1)
    images, labels = train.batch(torch.arange(27))
    torch.testing.assert_close(
        torch.cat([output for output, _ in found]), to_float(images).mean((1, 2, 3))
    )
    assert torch.cat([labels for _, labels in found]).equal(labels)


def test_no_samples_are_no_batches(context: TaskContext) -> None:
    assert list(forward(context, context.data.train.subset([]), "net", context.net)) == []
    assert context.meter.total == 0


def test_the_network_is_in_evaluation_mode_and_stays_as_it_is(context: TaskContext) -> None:
    before = {name: tensor.clone() for name, tensor in context.net.state_dict().items()}
    context.net.train()
    modes = []

    def compute(images: Tensor) -> Tensor:
        modes.append((context.net.training, torch.is_inference_mode_enabled()))
        logits: Tensor = context.net(images)
        return logits

    for output, _ in forward(context, context.data.test, "net", compute):
        assert not output.requires_grad
    assert modes == [(False, True)]
    after = context.net.state_dict()
    assert all(after[name].equal(before[name]) for name in before)


def test_whoever_takes_an_output_can_still_train(context: TaskContext) -> None:
    weight = torch.ones(3, requires_grad=True)
    for _ in forward(context, context.data.test, "net", context.net):
        assert not torch.is_inference_mode_enabled()
        (weight * 2).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    # Nor does it stay behind when somebody stops half-way.
    passing = forward(context, context.data.test, "net", context.net)
    next(passing)
    assert not torch.is_inference_mode_enabled()


def test_flops_are_counted_for_each_batch(
    context: TaskContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVALUATION_BATCH", 6)
    test = context.data.test
    list(forward(context, test.subset(torch.arange(6)), "net", context.net))
    once = context.meter.total
    assert once > 0
    list(forward(context, test, "net", context.net))
    assert context.meter.total == 3 * once
