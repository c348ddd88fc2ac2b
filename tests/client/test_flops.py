from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import pytest
import torch
from factories import (
    NO_FEATURES,
    MakeNet,
    MakeWorker,
    learn_request,
    learning,
    same_bits,
    snapshot,
)
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from foul.client.context import TaskContext
from foul.client.flops import FlopMeter
from foul.client.learn import learn
from foul.client.worker import Worker
from foul.config.schema import LearningConfig
from foul.data import ClientData
from foul.federation.messages import Reply, Request


class CountEveryStep(FlopMeter):
    """The oracle: leaves torch's counter on."""

    @contextmanager
    def step(self, kind: Hashable) -> Iterator[None]:
        with FlopCounterMode(display=False) as counter:
            yield
        self.total += counter.get_total_flops()


def run(meter: FlopMeter, net_of: MakeNet, client: ClientData, config: LearningConfig) -> int:
    net = net_of()
    request = learn_request(client.id, snapshot(net), config)
    cpu = torch.device("cpu")
    context = TaskContext(
        client, net, cpu, meter, NO_FEATURES, 1, request.tensors, request.settings
    )
    learn(context)
    return meter.total


@pytest.mark.parametrize("objective", ["l2u", "supervised"])
@pytest.mark.parametrize("batch_size", [9, 27])
def test_totals_are_those_of_counting_every_step(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], objective: str, batch_size: int
) -> None:
    config = learning(objective=objective, batch_size=batch_size)
    client = tiny_clients[0]
    total = run(FlopMeter(), make_net, client, config)
    assert total == run(CountEveryStep(), make_net, client, config)
    assert total > 0


def test_backward_counts_and_other_shapes_are_counted_anew() -> None:
    layer, meter = nn.Linear(5, 7), FlopMeter()

    def step(count: int) -> None:
        with meter.step(("linear", count)):
            torch.autograd.backward(layer(torch.ones(count, 5)).sum())

    step(3)
    # Forward and the weight's gradient: two products of 3 x 5 x 7 multiply-adds.
    assert meter.total == 2 * (2 * 3 * 5 * 7)
    step(3)
    assert meter.total == 4 * (2 * 3 * 5 * 7)
    step(6)
    assert meter.total == 4 * (2 * 3 * 5 * 7) + 2 * (2 * 6 * 5 * 7)


def test_a_step_that_fails_is_not_remembered() -> None:
    meter = FlopMeter()
    with pytest.raises(ValueError, match="torn"), meter.step("kind"):
        raise ValueError("torn")
    assert meter.total == 0
    with meter.step("kind"):
        torch.ones(2, 3) @ torch.ones(3, 4)
    assert meter.total == 2 * 2 * 3 * 4


def first_and_second(worker: Worker, request: Request) -> tuple[Reply, Reply]:
    """The reply of a worker that counts each step, and of the same worker warmed up."""
    first, second = worker.perform(request), worker.perform(request)
    assert first.error == ""
    return first, second


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"norm": "group"},
        {"adversarial": True},
        {"backbone": "small"},
        {"backbone": "resnet18", "width": 0.125},
    ],
)
@pytest.mark.parametrize("objective", ["l2u", "supervised"])
def test_counting_changes_no_bit(
    make_worker: MakeWorker,
    make_net: MakeNet,
    model: dict[str, object],
    objective: str,
) -> None:
    """Else a resumed run, whose worker is fresh, would part from one that was left alone."""
    config = learning(objective=objective, l2u={"alpha_adv": 0.1} if "adversarial" in model else {})
    request = learn_request("north-0", snapshot(make_net(**model)), config, round=3)
    first, second = first_and_second(make_worker(**model), request)
    assert same_bits(first.tensors, second.tensors)
    assert first.numbers == second.numbers
    assert first.flops == second.flops > 0


def test_counting_changes_no_answer(make_worker: MakeWorker, make_net: MakeNet) -> None:
    request = Request("east-1", "evaluate", 0, snapshot(make_net()), {"splits": ["test", "train"]})
    first, second = first_and_second(make_worker(), request)
    assert first.numbers == second.numbers
    assert first.flops == second.flops > 0
