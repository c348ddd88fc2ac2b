from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet
from frozen_workers import frozen_worker, settings, unlearning

from foul.client.compress import Precision, decode, encode
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.federation.messages import Reply, Request, Tensors, join_groups
from foul.models import DisentangledNet

POINTS = [0.0, 0.3, 1.0, 4.0]


def ask(worker: Worker, client: str, centre: Tensors, way: Tensors, **values: Any) -> Reply:
    asked = {"frozen": "key", "session": "session", "points": POINTS, "samples": 99, **values}
    tensors = join_groups({"centre": centre, "way": way})
    return worker.perform(Request(client, "probe", 2, tensors, asked))


def direction(scope: Tensors) -> Tensors:
    generator = torch.Generator().manual_seed(4)
    return {n: t.std() * torch.randn(t.shape, generator=generator) for n, t in scope.items()}


@pytest.mark.parametrize(("samples", "count"), [(1, 1), (10, 10), (27, 27), (99, 27)])
@pytest.mark.parametrize(("low", "short"), [("float32", "float32"), ("bfloat16", "int8")])
def test_the_answers_are_those_of_the_whole_network(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    samples: int,
    count: int,
    low: Precision,
    short: Precision,
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    centre, way = encode(scope, low), encode(direction(scope), short)
    reply = ask(worker, client.id, centre, way, samples=samples)
    assert (reply.error, reply.tensors) == ("", {})
    rows = torch.tensor([number * 27 // count for number in range(count)])
    images, labels = client.train.batch(rows)
    expected = []
    for point in POINTS:
        moved = {n: decode(centre)[n] + point * decode(way)[n] for n in scope}
        net.load_state_dict(net.state_dict() | moved)
        with torch.no_grad():
            expected.append(int((net(to_float(images)).argmax(1) == labels).sum()))
    assert reply.numbers == {"samples": count, "correct": expected}
    if count == 27:
        assert len(set(expected)) > 1


def test_it_is_the_same_after_other_tasks(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    way = direction(scope)
    first = ask(worker, client.id, scope, way)
    other = {n: t + 1 for n, t in scope.items()}
    worker.perform(Request(client.id, "evaluate", 0, other, {"splits": ["test"]}))
    assert ask(worker, client.id, scope, way).numbers == first.numbers


def test_what_is_missing_is_a_reply_that_says_so(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    assert "are not here" in ask(worker, client.id, scope, scope, frozen="other").error
    first = next(iter(scope))
    lacking = {name: t for name, t in scope.items() if name != first}
    assert first in ask(worker, client.id, scope, lacking).error


def test_without_a_centre_it_is_where_this_rounds_training_started(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, scope = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    way = direction(scope)
    start = {name: tensor + 0.5 * way[name] for name, tensor in scope.items()}
    assert "the scope of round 2 is not here" in ask(worker, client.id, {}, way).error
    for number, begin in ((2, start), (3, scope)):
        worker.perform(unlearning(client.id, number, begin, settings(stepwise=True)))
    expected = ask(worker, client.id, start, way)
    assert ask(worker, client.id, {}, way).numbers == expected.numbers
    assert expected.numbers != ask(worker, client.id, scope, way).numbers
