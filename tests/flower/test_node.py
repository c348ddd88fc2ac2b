import json
import stat
import time
from collections.abc import Iterator
from multiprocessing.connection import Client
from pathlib import Path

import pytest
import torch
from factories import MakeNet, learn_request, same_bits, snapshot
from small_runs import running

from flower.running_nodes import TINY, ask_node, parcel_of, running_node
from foul.client.worker import Worker
from foul.config.schema import Config, ModelConfig
from foul.data import ClientData
from foul.errors import UserError
from foul.federation.messages import Request
from foul.flower.holdings import Holding
from foul.flower.node import listen, worker_maker
from foul.flower.parcel import Parcel, receive, send


@pytest.fixture(scope="module")
def client(tiny_clients: tuple[ClientData, ...]) -> ClientData:
    return tiny_clients[0]


@pytest.fixture(scope="module")
def node(client: ClientData) -> Iterator[Path]:
    with running_node(client) as path:
        yield path


def request(client: ClientData, task: str) -> Request:
    return Request(client.id, task, 1, {"x": torch.arange(3.0)}, {})


def test_a_node_performs_tasks_as_a_worker_does(
    node: Path, client: ClientData, make_net: MakeNet
) -> None:
    net = make_net(seed=1)
    wanted = learn_request(client.id, snapshot(net))
    here = Worker([client], net).perform(wanted)
    there = ask_node(node, wanted)
    assert not there.error
    assert same_bits(here.tensors, there.tensors)
    assert (here.numbers, here.flops) == (there.numbers, there.flops)


def test_a_node_says_who_it_is(node: Path, client: ClientData) -> None:
    said = ask_node(node, Request("", "who", 0, {}, {}))
    assert said.client == said.numbers["client"] == client.id
    assert said.numbers["samples"]["train"] == len(client.train)
    assert said.numbers["classes"] == ["a", "b", "c"]


def test_only_its_user_can_open_the_socket(node: Path) -> None:
    assert stat.S_IMODE(node.stat().st_mode) == 0o600


def test_tasks_find_the_same_process_warm(node: Path, client: ClientData) -> None:
    one, other = (ask_node(node, request(client, "echo")) for _ in range(2))
    assert one.numbers["pid"] == other.numbers["pid"]
    assert other.tensors["x"].equal(torch.arange(3.0))


def test_another_network_is_made_when_it_is_asked_for(node: Path, client: ClientData) -> None:
    sizes = [
        ask_node(node, request(client, "echo"), width=width).numbers["size"]
        for width in (0.5, 1.0, 0.5)
    ]
    assert sizes[0] == sizes[2] < sizes[1]


def test_a_task_that_hangs_is_ended_at_its_deadline(node: Path, client: ClientData) -> None:
    before = ask_node(node, request(client, "echo")).numbers["pid"]
    began = time.monotonic()
    reply = ask_node(node, request(client, "hang"), deadline=0.3)
    assert reply.error == "the task took longer than 0.3 s"
    assert time.monotonic() - began < 10
    after = ask_node(node, request(client, "echo"))
    assert not after.error
    assert after.numbers["pid"] != before
    assert not running(before)


def test_a_task_that_dies_takes_nothing_with_it(node: Path, client: ClientData) -> None:
    assert "exit code 7" in ask_node(node, request(client, "die")).error
    assert not ask_node(node, request(client, "echo")).error


def test_a_task_whose_asker_left_is_ended(node: Path, client: ClientData) -> None:
    busy = ask_node(node, request(client, "echo")).numbers["pid"]
    with Client(str(node), "AF_UNIX") as asker:
        send(asker, parcel_of(request(client, "hang")))
        time.sleep(0.2)
    assert ask_node(node, request(client, "echo")).numbers["pid"] != busy


def test_a_task_that_fails_says_why(node: Path, client: ClientData) -> None:
    assert ask_node(node, request(client, "fail")).error == "ValueError: no luck"
    assert "no task is called" in ask_node(node, request(client, "nonsense")).error


def test_a_message_for_somebody_else_is_refused(node: Path) -> None:
    assert (
        "no client is called 'other'" in ask_node(node, Request("other", "echo", 1, {}, {})).error
    )


@pytest.mark.parametrize(
    "parcel",
    [
        Parcel(b"\xff"),
        Parcel(b"[]", b"", b"{}"),
        Parcel(b'{"task": "echo"}', b"", b'{"deadline": "soon"}'),
        Parcel(b'{"task": "echo"}', b"", b'{"deadline": 5, "model": {"backbone": "huge"}}'),
        Parcel(
            b'{"task": "echo", "client": "x"}',
            b"\x07" * 20,
            json.dumps({"deadline": 5, "model": TINY}).encode(),
        ),
    ],
)
def test_garbage_is_answered_and_forgotten(node: Path, client: ClientData, parcel: Parcel) -> None:
    with Client(str(node), "AF_UNIX") as asker:
        send(asker, parcel)
        assert json.loads(receive(asker, 20).header)["error"]
    assert not ask_node(node, request(client, "echo")).error


def test_a_task_ends_with_its_killed_node(client: ClientData) -> None:
    with running_node(client) as path:
        task = ask_node(path, request(client, "echo")).numbers["pid"]
        assert running(task)
    for _ in range(50):
        if not running(task):
            return
        time.sleep(0.1)
    pytest.fail("the task process outlived its node")


def test_a_socket_that_was_left_behind_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listen(Path("left.sock")).close()
    listen(Path("left.sock")).close()


def test_a_file_that_is_no_socket_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is no socket"):
        listen(Path("notes.txt"))
    assert Path("notes.txt").read_text() == "mine"


def test_two_nodes_cannot_share_a_socket(node: Path) -> None:
    with pytest.raises(UserError, match="Another node listens"):
        listen(node)


def test_a_path_that_no_socket_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"longer than 100 bytes.*--socket"):
        listen(tmp_path / ("x" * 100))


def test_the_worker_has_the_asked_network_and_the_nodes_features(
    client: ClientData, make_net: MakeNet, tmp_path: Path
) -> None:
    holding = Holding(client, ("a", "b", "c"), 16)
    make = worker_maker(Config(device="cpu", threads=1), holding, tmp_path)
    worker = make(ModelConfig.model_validate(TINY))
    assert [each.id for each in worker.clients] == [client.id]
    tensors = snapshot(make_net(seed=1))
    assert not worker.perform(learn_request(client.id, tensors)).error
    # A server elsewhere does not get to see single images.
    for task in ("reconstruct", "latents"):
        shown = worker.perform(Request(client.id, task, 0, tensors, {"samples": 1}))
        assert f"no task is called '{task}'" in shown.error
