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
from foul.config.schema import ModelConfig
from foul.data import ClientData
from foul.federation.messages import ClientInfo, Numbers, Request, Tensors
from foul.models import DEPLOYED, DisentangledNet, build_network, part_of

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


@pytest.fixture
def other_make() -> ModelConfig:
    """A network of another shape than the worker's own."""
    return ModelConfig(backbone="small", norm="group", width=0.25, decoder_channels=4)


def test_another_network_does_its_tasks_as_a_worker_of_its_own_would(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], sent: Tensors, other_make: ModelConfig
) -> None:
    theirs = snapshot(build_network(other_make, 3, 16, 7))
    described = other_make.model_dump(mode="json")
    config = learning(objective="supervised")
    worker = Worker(tiny_clients, make_net())
    alone = Worker(tiny_clients, build_network(other_make, 3, 16, 0))
    first = worker.perform(learn_request("north-0", sent))
    asked = learn_request("north-0", theirs, config, model=described)
    expected = alone.perform(learn_request("north-0", theirs, config))
    reply = worker.perform(asked)
    assert reply.error == ""
    assert same_bits(reply.tensors, expected.tensors)
    assert reply.numbers == expected.numbers
    # Once more, after it has been trained: nothing is left of that.
    assert same_bits(worker.perform(asked).tensors, expected.tensors)
    assert same_bits(worker.perform(learn_request("north-0", sent)).tensors, first.tensors)


def test_another_network_is_built_once_and_the_own_one_left_alone(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], other_make: ModelConfig
) -> None:
    seen: list[DisentangledNet] = []

    def look(context: TaskContext) -> tuple[Tensors, Numbers]:
        seen.append(context.net)
        context.load()
        return {}, {}

    own = make_net()
    before = snapshot(own)
    worker = Worker(tiny_clients, own, tasks={"look": look})
    theirs = snapshot(build_network(other_make, 3, 16, 7))
    described = other_make.model_dump(mode="json")
    turned = dict(reversed(described.items()))
    wider = other_make.model_copy(update={"width": 0.5}).model_dump(mode="json")
    for tensors, values in (
        (theirs, {"model": described}),
        (theirs, {"model": turned}),
        ({}, {"model": wider}),
        ({}, {}),
    ):
        assert worker.perform(Request("north-0", "look", 1, tensors, values)).error == ""
    assert seen[0] is seen[1]
    assert seen[3] is own
    assert len({id(net) for net in seen}) == 3
    assert (seen[0].classes, seen[0].image_size) == (own.classes, own.image_size) == (3, 16)
    assert same_bits(snapshot(own), before)
    assert same_bits(snapshot(seen[0]), theirs)


@pytest.mark.parametrize("task", ["evaluate", "learn"])
def test_work_is_counted_for_the_network_that_did_it(
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    sent: Tensors,
    other_make: ModelConfig,
    task: str,
) -> None:
    """Batches of the same shape cost another network another number of operations."""
    config = learning(objective="supervised").model_dump(mode="json")
    values = {"splits": ["train"], "learning": config, "seed": 0}
    theirs = snapshot(build_network(other_make, 3, 16, 7))
    mixed = Worker(tiny_clients, make_net())
    own, other = (
        Worker(tiny_clients, net) for net in (make_net(), build_network(other_make, 3, 16, 0))
    )
    described = {"model": other_make.model_dump(mode="json")}
    expected = [
        worker.perform(Request("north-0", task, 1, tensors, values)).flops
        for worker, tensors in ((own, sent), (other, theirs))
    ]
    assert expected[0] != expected[1]
    assert [
        mixed.perform(Request("north-0", task, 1, tensors, values | described_by)).flops
        for tensors, described_by in ((sent, {}), (theirs, described))
    ] == expected


def test_a_network_that_cannot_be_is_a_reply_that_says_so(make_worker: MakeWorker) -> None:
    asked = Request("north-0", "evaluate", 1, {}, {"splits": [], "model": {"backbone": "spine"}})
    assert "spine" in make_worker().perform(asked).error


@needs_gpu
@pytest.mark.parametrize("objective", ["l2u", "supervised"])
def test_a_gpu_does_the_same_work(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], sent: Tensors, objective: str
) -> None:
    worker = Worker(tiny_clients, make_net(), torch.device("cuda"))
    reply = worker.perform(learn_request("north-0", sent, learning(objective=objective)))
    assert reply.error == ""
    assert all(tensor.device.type == "cpu" for tensor in reply.tensors.values())
