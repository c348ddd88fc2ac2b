import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import torch
from factories import MakeNet
from small_runs import running

from foul.client.context import Task, TaskContext
from foul.client.worker import Worker
from foul.data import ClientData
from foul.federation.inprocess import InProcessEngine
from foul.federation.messages import Numbers, Reply, Request, Tensors
from foul.federation.processes import ProcessEngine

Outcome = tuple[Tensors, Numbers]
MakeEngine = Callable[..., ProcessEngine]


def echo(context: TaskContext) -> Outcome:
    """Answers with what it got, who it is and where it runs."""
    return dict(context.tensors), {
        "client": context.data.id,
        "pid": os.getpid(),
        "threads": torch.get_num_threads(),
        **context.settings,
    }


def slow(context: TaskContext) -> Outcome:
    """One client takes its time."""
    time.sleep(0.3 if context.data.id == context.settings["who"] else 0)
    return echo(context)


def die(context: TaskContext) -> Outcome:
    """One client takes its process down."""
    if context.data.id == context.settings["who"]:
        os._exit(7)
    return echo(context)


def fail(context: TaskContext) -> Outcome:
    raise ValueError(f"{context.data.id} has no luck")


def sign(context: TaskContext) -> Outcome:
    Path(context.settings["folder"], context.data.id).touch()
    return {}, {}


def grow(context: TaskContext) -> Outcome:
    return {"big": context.tensors["big"] + 1}, {}


TASKS: Mapping[str, Task] = {
    "echo": echo,
    "slow": slow,
    "die": die,
    "fail": fail,
    "grow": grow,
    "sign": sign,
}


@pytest.fixture
def worker(tiny_clients: tuple[ClientData, ...], make_net: MakeNet) -> Worker:
    return Worker(tiny_clients, make_net(), tasks=TASKS)


@pytest.fixture
def make_engine(worker: Worker) -> Iterator[MakeEngine]:
    """Makes engines that end with the test."""
    engines = []

    def make(processes: int = 2) -> ProcessEngine:
        engines.append(ProcessEngine(worker, processes, 1))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def ask(
    engine: ProcessEngine | InProcessEngine,
    task: str,
    tensors: Tensors | None = None,
    **settings: object,
) -> list[Reply]:
    sent = {"t": torch.arange(3)} if tensors is None else tensors
    requests = [Request(client.id, task, 1, sent, settings) for client in engine.clients]
    return list(engine.run(requests))


def pids(engine: ProcessEngine) -> set[int]:
    return {reply.numbers["pid"] for reply in ask(engine, "echo")}


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_replies_come_in_the_order_of_the_requests(make_engine: MakeEngine, processes: int) -> None:
    engine = make_engine(processes)
    replies = ask(engine, "slow", who="east-0")
    names = [client.id for client in engine.clients]
    assert names == sorted(names)
    assert [reply.client for reply in replies] == names
    assert [reply.numbers["client"] for reply in replies] == names
    assert all(reply.tensors["t"].equal(torch.arange(3)) for reply in replies)


def test_work_is_done_in_other_processes_of_one_thread(make_engine: MakeEngine) -> None:
    replies = ask(make_engine(2), "slow", who="east-0")
    assert len({reply.numbers["pid"] for reply in replies} - {os.getpid()}) == 2
    assert {reply.numbers["threads"] for reply in replies} == {1}


def test_it_answers_as_the_engine_in_this_process_does(
    make_engine: MakeEngine, worker: Worker
) -> None:
    here, there = InProcessEngine(worker), make_engine(2)
    assert list(here.clients) == list(there.clients)
    for one, other in zip(ask(here, "fail"), ask(there, "fail"), strict=True):
        assert (one.client, one.error) == (other.client, other.error)
        assert one.error == f"ValueError: {one.client} has no luck"


def test_a_process_that_dies_costs_its_client_only(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    before = pids(engine)
    replies = ask(engine, "die", who="north-1")
    errors = {reply.client: reply.error for reply in replies if reply.error}
    assert errors == {"north-1": "its worker process died (exit code 7)"}
    assert len(replies) == len(engine.clients)
    assert not any(reply.error for reply in ask(engine, "echo"))
    assert len(pids(engine) - before) == 1


def test_a_process_that_died_while_idle_is_replaced(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    (victim,) = pids(engine)
    os.kill(victim, 9)
    while running(victim):
        time.sleep(0.01)
    errors = [reply.error for reply in ask(engine, "echo")]
    assert errors[0] == "its worker process died (exit code -9)"
    assert not any(errors[1:])


def test_every_process_may_die(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    for client in engine.clients:
        replies = ask(engine, "die", who=client.id)
        assert [reply.client for reply in replies if reply.error] == [client.id]


def test_big_payloads_cross(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    big = torch.arange(3_000_000, dtype=torch.float32)
    expected = big + 1
    for reply in ask(engine, "grow", {"big": big}):
        assert reply.tensors["big"].equal(expected)


def test_requests_may_carry_different_tensors(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    requests = [
        Request(client.id, "echo", 1, {"t": torch.tensor(number)}, {})
        for number, client in enumerate(engine.clients)
    ]
    assert [int(r.tensors["t"]) for r in engine.run(requests)] == list(range(len(requests)))


def test_no_requests_are_no_replies(make_engine: MakeEngine) -> None:
    assert list(make_engine(2).run([])) == []


def test_replies_are_not_made_far_ahead_of_a_slow_reader(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(2)
    settings = {"folder": str(tmp_path)}
    requests = [Request(client.id, "sign", 1, {}, settings) for client in engine.clients]
    for position, _ in enumerate(engine.run(requests)):
        time.sleep(0.05)
        assert len(list(tmp_path.iterdir())) <= position + 1 + 2 * 2


def test_a_reader_who_leaves_gets_no_old_replies_later(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    settings = {"run": 1, "who": "east-1"}
    requests = [Request(client.id, "slow", 1, {}, settings) for client in engine.clients]
    replies = engine.run(requests)
    next(replies)
    del replies
    gc.collect()
    later = ask(engine, "slow", who="east-1", run=2)
    assert [reply.numbers["run"] for reply in later] == [2] * 8


def test_closing_ends_the_processes(make_engine: MakeEngine) -> None:
    engine, other = make_engine(2), make_engine(2)
    workers = pids(engine)
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 10
    assert not any(running(pid) for pid in workers)
    assert pids(other)
    engine.close()
