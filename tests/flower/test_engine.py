import json
from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, same_bits, snapshot
from flwr.app import ConfigRecord, Error, RecordDict

from flower.fake_grid import Answer, FakeGrid, encoded, engine_on, nodes_of
from foul.data import ClientData
from foul.errors import UserError
from foul.federation.inprocess import InProcessEngine
from foul.federation.messages import Reply, Request, Tensors
from foul.flower.parcel import Parcel
from foul.flower.post import PUSHES
from foul.flower.wire import from_records


@pytest.fixture
def three(tiny_clients: tuple[ClientData, ...]) -> list[ClientData]:
    return sorted(tiny_clients, key=lambda client: client.id)[:3]


@pytest.fixture
def grid(three: list[ClientData], make_worker: MakeWorker) -> FakeGrid:
    return FakeGrid(nodes_of(three, make_worker))


@pytest.fixture
def tensors(make_net: MakeNet) -> Tensors:
    return snapshot(make_net(seed=1))


def evaluations(clients: list[ClientData], tensors: Tensors) -> list[Request]:
    settings = {"splits": ["test"], "batch_size": 8}
    return [Request(client.id, "evaluate", 1, tensors, settings) for client in clients]


def test_replies_are_those_of_the_engine_in_this_process(
    grid: FakeGrid, three: list[ClientData], make_worker: MakeWorker, tensors: Tensors
) -> None:
    requests = evaluations(three, tensors)
    here = list(InProcessEngine(make_worker(three)).run(requests))
    there = list(engine_on(grid).run(requests))
    for one, other in zip(here, there, strict=True):
        assert not other.error
        assert (one.client, one.numbers, one.flops) == (other.client, other.numbers, other.flops)
        assert same_bits(one.tensors, other.tensors)


def test_the_clients_are_those_who_are_online(grid: FakeGrid, three: list[ClientData]) -> None:
    engine = engine_on(grid)
    assert [client.id for client in engine.clients] == [client.id for client in three]
    assert engine.clients[0].domain == three[0].domain
    assert engine.clients[0].samples["train"] == len(three[0].train)
    assert (engine.classes, engine.image_size) == (("a", "b", "c"), 16)


def test_replies_keep_the_order_of_requests_whoever_is_quicker(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid)
    for node, delay in zip(grid.online.values(), (9.0, 0.0, 4.0), strict=True):
        node.delay = delay
    requests = evaluations([three[2], three[0], three[1]], tensors)
    replies = list(engine.run(requests))
    assert [r.client for r in replies] == [request.client for request in requests]
    assert not any(reply.error for reply in replies)
    # All were asked at once: it took as long as the slowest.
    assert 9.0 <= grid.now < 10.0


def test_a_client_that_misses_the_deadline_is_an_error_and_the_others_are_not(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid)
    next(iter(grid.online.values())).answer = lambda _: None
    first, *others = engine.run(evaluations(three, tensors))
    assert first == Reply(three[0].id, error="no reply within the deadline")
    assert not any(reply.error for reply in others)
    assert grid.now < 60


def test_messages_that_a_killed_superlink_lost_are_sent_again_as_new_ones(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid)
    grid.sent.clear()
    grid.loses = PUSHES - 1
    assert not any(reply.error for reply in engine.run(evaluations(three, tensors)))
    assert len(grid.sent) == PUSHES * len(three)
    assert len({message.object_id for message in grid.sent}) == len(grid.sent)


def test_a_superlink_that_loses_everything_fails_the_clients_not_the_command(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid)
    grid.loses = PUSHES
    replies = list(engine.run(evaluations(three, tensors)))
    assert [reply.error for reply in replies] == [
        "Flower did not take the message (node gone?)" for _ in three
    ]


def test_a_client_that_leaves_and_comes_back_is_asked_again(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine, requests = engine_on(grid), evaluations(three, tensors)
    gone = grid.online.pop(100)
    first, *others = engine.run(requests)
    assert first == Reply(three[0].id, error="not connected")
    assert not any(reply.error for reply in others)
    assert len(engine.clients) == 3
    # Without authentication, a node that is started again has another number.
    gone.id = 200
    grid.online[200] = gone
    assert not any(reply.error for reply in engine.run(requests))


def test_a_client_whose_data_has_changed_is_left_out(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine, requests = engine_on(grid), evaluations(three, tensors)
    node = grid.online.pop(100)
    list(engine.run(requests))
    fewer = three[0].train.subset([0, 1])
    node.holding = replace(node.holding, client=replace(three[0], train=fewer))
    node.id = 200
    grid.online[200] = node
    assert "data has changed" in next(engine.run(requests)).error


GARBAGE: dict[str, tuple[Answer, str]] = {
    "a Flower error": (lambda _: Error(5, "Node Unavailable"), "Flower error 5: Node Unavailable"),
    "other records": (lambda _: RecordDict({}), "garbage"),
    "a header of text": (
        lambda _: RecordDict({"header": ConfigRecord({"header": "x", "envelope": b""})}),
        "garbage",
    ),
    "no JSON": (lambda _: Parcel(b"\xff\x00"), "garbage"),
    "JSON of another kind": (lambda _: Parcel(b"[1, 2]"), "garbage"),
    "numbers of another task": (
        lambda _: encoded(Reply("east-0", numbers={"samples": 3})),
        "its number samples cannot be used",
    ),
    "numbers without a split": (lambda _: encoded(Reply("east-0")), "the split 'test'"),
    "no tensors": (lambda _: Parcel(encoded(Reply("east-0")).header, b"\x09" * 30), "garbage"),
    "another client": (lambda _: encoded(Reply("east-1")), "it answered as 'east-1'"),
    "too much": (
        lambda _: encoded(Reply("east-0", {"x": torch.zeros(5000)})),
        "at most 10000 are taken",
    ),
    "a failure": (lambda _: encoded(Reply("east-0", error="no luck")), "no luck"),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_cannot_be_used_becomes_an_error_of_that_client(
    kind: str, grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid, largest_reply=10_000)
    answer, told = GARBAGE[kind]
    assert three[0].id == "east-0"
    grid.online[100].answer = answer
    first, *others = engine.run(evaluations(three, tensors))
    assert first.client == "east-0"
    assert told in first.error
    assert not first.tensors or kind == "a failure"
    assert not any(reply.error for reply in others)


def test_a_message_that_flower_does_not_take_is_an_error(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_on(grid)
    monkeypatch.setattr(grid, "push_messages", lambda messages: [])
    assert all("did not take" in r.error for r in engine.run(evaluations(three, tensors)))


def test_all_clients_of_a_round_are_sent_the_same_bytes(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid)
    grid.sent.clear()
    list(engine.run(evaluations(three, tensors)))
    arrays = [from_records(message.content).tensors for message in grid.sent]
    # The very same object: it is encoded once, and Flower stores it once.
    assert all(array is arrays[0] for array in arrays)
    size = sum(tensor.nbytes for tensor in tensors.values())
    assert size < len(arrays[0]) < size + 200 * len(tensors)


def test_a_message_outlives_its_deadline_but_not_for_long(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid, deadline=50)
    list(engine.run(evaluations(three, tensors)))
    assert 50 < grid.sent[-1].metadata.ttl < 200


def test_a_node_is_told_the_networks_make_and_the_deadline(
    grid: FakeGrid, three: list[ClientData], tensors: Tensors
) -> None:
    engine = engine_on(grid, deadline=50)
    list(engine.run(evaluations(three, tensors)))
    said = json.loads(from_records(grid.sent[-1].content).envelope)
    assert said["deadline"] == 50
    assert said["model"]["backbone"] == "small"


def test_a_new_run_waits_for_the_clients_it_names(grid: FakeGrid) -> None:
    late = grid.online.pop(102)

    def sleep(seconds: float) -> None:
        grid.now += seconds
        if grid.now > 3:
            grid.online[102] = late

    grid.sleep = sleep  # type: ignore[method-assign]
    engine = engine_on(grid, clients=["east-0", "east-1", "north-0"])
    assert len(engine.clients) == 3


def test_a_new_run_does_not_start_without_a_client_it_names(grid: FakeGrid) -> None:
    with pytest.raises(UserError, match=r"Within 5 s, west-9 did not connect.*foul node"):
        engine_on(grid, clients=["east-0", "west-9"])


def test_a_new_run_does_not_start_with_too_few_clients(grid: FakeGrid) -> None:
    with pytest.raises(UserError, match="3 clients are connected, 4 are needed"):
        engine_on(grid, min_clients=4)


def test_nobody_online_is_an_error_that_says_what_to_start() -> None:
    with pytest.raises(UserError, match=r"0 clients are connected.*foul node"):
        engine_on(FakeGrid([]))


def test_a_run_that_goes_on_starts_without_those_who_are_away(grid: FakeGrid) -> None:
    known = engine_on(grid).clients
    del grid.online[101]
    engine = engine_on(grid, known)
    assert list(engine.clients) == list(known)


def test_a_run_that_goes_on_does_not_wait_for_those_who_were_erased(grid: FakeGrid) -> None:
    named = ["east-0", "east-1", "north-0"]
    known = [client for client in engine_on(grid).clients if client.id != "north-0"]
    del grid.online[102]
    engine_on(grid, known, clients=named)
    assert grid.now == 0


def test_a_node_of_another_run_is_no_client_of_this_one(
    grid: FakeGrid, three: list[ClientData]
) -> None:
    known = [client for client in engine_on(grid).clients if client.id != "north-0"]
    grid.online[102].asked.clear()
    engine = engine_on(grid, known)
    assert [client.id for client in engine.clients] == ["east-0", "east-1"]
    assert not grid.online[102].asked


def test_a_node_cannot_claim_to_be_another_client(grid: FakeGrid) -> None:
    grid.online[101].says = {"client": "east-0"}
    with pytest.raises(UserError, match=r"east-1 did not connect.*it answered as 'east-0'"):
        engine_on(grid, clients=["east-0", "east-1"])


def test_an_unregistered_node_is_refused(grid: FakeGrid) -> None:
    for node in grid.online.values():
        node.name = ""
    with pytest.raises(UserError, match=r"not registered by name.*trust_names"):
        engine_on(grid)
    assert all(node.asked == [] for node in grid.online.values())


def test_an_unregistered_node_may_name_itself_where_that_is_allowed(grid: FakeGrid) -> None:
    for node in grid.online.values():
        node.name = ""
    engine = engine_on(grid, trust_names=True)
    assert [client.id for client in engine.clients] == ["east-0", "east-1", "north-0"]


def test_two_nodes_that_claim_one_client_are_both_left_out(grid: FakeGrid) -> None:
    for node in grid.online.values():
        node.name = ""
    grid.online[101].says = {"client": "east-0"}
    with pytest.raises(UserError, match="two nodes claim"):
        engine_on(grid, trust_names=True, clients=["east-0", "north-0"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"classes": ["a", "b"]}, "different classes"),
        ({"image_size": 32}, "different image_size"),
    ],
)
def test_nodes_that_contradict_each_other_are_named(
    grid: FakeGrid, said: dict[str, object], told: str
) -> None:
    grid.online[101].says = said
    with pytest.raises(UserError, match=f"east-0 and east-1 have {told}"):
        engine_on(grid)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"protocol": 99}, "another protocol"),
        ({"samples": {"train": 3}}, "how many samples"),
        ({"samples": {"train": -3, "validation": 0, "test": 0}}, "how many samples"),
        ({"image_size": "big"}, "does not say who it is"),
    ],
)
def test_a_node_that_does_not_say_who_it_is_is_refused(
    grid: FakeGrid, said: dict[str, object], told: str
) -> None:
    grid.online[101].says = said
    with pytest.raises(UserError, match=told):
        engine_on(grid, clients=["east-0", "east-1"])
