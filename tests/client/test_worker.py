import gc
import re
from dataclasses import replace

import pytest
import torch
from factories import (
    MakeNet,
    MakeWorker,
    learn_request,
    learning,
    same_bits,
    snapshot,
)

from foul.client.context import TaskContext
from foul.client.worker import Worker
from foul.data import ClientData
from foul.federation.messages import ClientInfo, Numbers, Request, Tensors
from foul.models import DEPLOYED, DisentangledNet, part_of

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def sent(make_net: MakeNet) -> Tensors:
    return snapshot(make_net())


def test_the_server_may_know_names_and_counts(make_worker: MakeWorker) -> None:
    clients = make_worker().clients
    assert clients[0] == ClientInfo("east-0", "east", {"train": 27, "validation": 3, "test": 12})
    assert [client.id for client in clients] == sorted(client.id for client in clients)
    assert len(clients) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client": "nobody"}, "no client is called 'nobody'"),
        ({"task": "dance"}, "no task is called 'dance'"),
        ({"settings": {}}, "learning"),
        ({"settings": {"learning": {"rounds": -1}, "seed": 0}}, "rounds"),
        ({"tensors": {"xi.bias": torch.zeros(9)}}, r"'xi.bias' \(9,\)"),
        ({"tensors": {"xi.banana": torch.zeros(3)}}, r"'xi.banana'.*no such tensor"),
    ],
)
def test_what_cannot_be_done_is_a_reply_that_says_why(
    make_worker: MakeWorker, sent: Tensors, change: dict[str, object], message: str
) -> None:
    request = replace(learn_request("north-0", sent), **change)  # type: ignore[arg-type]
    worker = make_worker()
    reply = worker.perform(request)
    assert reply.client == request.client
    assert reply.tensors == {}
    assert re.search(message, reply.error), reply.error
    # The worker is still good.
    after = worker.perform(learn_request("north-0", sent))
    assert same_bits(after.tensors, make_worker().perform(learn_request("north-0", sent)).tensors)


def test_a_client_without_training_samples_answers_why(
    make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...], sent: Tensors
) -> None:
    empty = replace(tiny_clients[0], train=tiny_clients[0].train.subset([]))
    reply = make_worker([empty]).perform(learn_request(empty.id, sent))
    assert "no training samples" in reply.error


def test_what_a_failing_task_spent_is_counted(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    def fail(context: TaskContext) -> tuple[Tensors, Numbers]:
        with context.meter.step("product"):
            torch.ones(2, 3) @ torch.ones(3, 4)
        raise RuntimeError("power cut")

    worker = Worker(tiny_clients, make_net(), tasks={"fail": fail})
    reply = worker.perform(Request("north-0", "fail", 1, {}, {}))
    assert reply.error == "RuntimeError: power cut"
    assert reply.flops == 2 * 2 * 3 * 4
    assert reply.seconds > 0


@pytest.mark.parametrize("between", ["learn", "evaluate", "fail"])
def test_clients_share_no_state(make_worker: MakeWorker, sent: Tensors, between: str) -> None:
    worker = make_worker()
    before = worker.perform(learn_request("north-0", sent))
    others = {
        "learn": learn_request("west-1", before.tensors, learning(objective="supervised")),
        "evaluate": Request("west-1", "evaluate", 0, before.tensors, {"splits": ["train"]}),
        "fail": Request("west-1", "learn", 1, before.tensors, {}),
    }
    worker.perform(others[between])
    after = worker.perform(learn_request("north-0", sent))
    assert same_bits(before.tensors, after.tensors)
    assert before.numbers == after.numbers


def test_nothing_depends_on_torchs_global_randomness(
    make_worker: MakeWorker, sent: Tensors
) -> None:
    worker = make_worker()
    config = learning(augment={"flip": True, "crop": 0.5})
    replies = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        replies.append(worker.perform(learn_request("north-0", sent, config)))
    assert same_bits(replies[0].tensors, replies[1].tensors)


def test_one_clients_replies_do_not_depend_on_who_else_is_there(
    make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...], sent: Tensors
) -> None:
    everybody, fewer = make_worker(), make_worker([c for c in tiny_clients if c.id != "east-1"])
    everybody.perform(learn_request("east-1", sent))
    for client in ("east-0", "south-1"):
        request = learn_request(client, sent, round=2)
        assert same_bits(everybody.perform(request).tensors, fewer.perform(request).tensors)


def test_there_is_one_live_network(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], sent: Tensors
) -> None:
    net = make_net()
    live: set[int] = set()

    def watch(context: TaskContext) -> tuple[Tensors, Numbers]:
        live.update(id(x) for x in gc.get_objects() if type(x) is DisentangledNet)
        return {}, {"same": context.net is net}

    gc.collect()
    others = {id(x) for x in gc.get_objects() if type(x) is DisentangledNet} - {id(net)}
    worker = Worker(tiny_clients, net, tasks={"watch": watch})
    for client in tiny_clients:
        assert worker.perform(Request(client.id, "watch", 1, sent, {})).numbers["same"]
    assert live - others == {id(net)}


def test_what_was_not_sent_does_not_matter(make_worker: MakeWorker, sent: Tensors) -> None:
    """The decoder stays behind in supervised rounds; whose it is must not show."""
    config = learning(objective="supervised")
    deployed = {name: t for name, t in sent.items() if part_of(name) in DEPLOYED}
    worker = make_worker()
    first = worker.perform(learn_request("north-0", deployed, config))
    worker.perform(learn_request("east-0", sent))
    assert same_bits(
        first.tensors, worker.perform(learn_request("north-0", deployed, config)).tensors
    )


@needs_gpu
@pytest.mark.parametrize("objective", ["l2u", "supervised"])
def test_a_gpu_does_the_same_work(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], sent: Tensors, objective: str
) -> None:
    worker = Worker(tiny_clients, make_net(), torch.device("cuda"))
    reply = worker.perform(learn_request("north-0", sent, learning(objective=objective)))
    assert reply.error == ""
    assert all(tensor.device.type == "cpu" for tensor in reply.tensors.values())
