import multiprocessing

import pytest
import torch
from small_runs import small_config

from foul.errors import UserError
from foul.federation.build import build, initial_network, opened
from foul.federation.inprocess import InProcessEngine
from foul.federation.ledger import Cost
from foul.federation.messages import Request
from foul.federation.observer import Observer
from foul.federation.processes import ProcessEngine


def test_a_setting_is_what_the_server_may_know() -> None:
    setting = build(small_config())
    clients = setting.federation.clients
    assert [client.id for client in clients] == ["east-0", "east-1", "north-0", "north-1"]
    assert {client.domain for client in clients} == {"east", "north"}
    assert all(client.samples == {"train": 27, "validation": 3, "test": 12} for client in clients)
    assert setting.classes == ("bars", "checks", "disc")
    assert setting.image_size == 16


def test_the_initial_network_depends_on_the_seed_only() -> None:
    one, two = build(small_config(clients__per_domain=3)), build(small_config())
    other = build(small_config(seed=1))
    assert all(tensor.equal(two.initial[name]) for name, tensor in one.initial.items())
    assert not all(tensor.equal(other.initial[name]) for name, tensor in one.initial.items())


def test_buffers_are_what_is_no_parameter() -> None:
    setting = build(small_config())
    net = initial_network(small_config(), 3, 16)
    assert setting.buffers == {name for name, _ in net.named_buffers()}
    assert setting.initial.keys() == net.state_dict().keys()


def test_initial_tensors_are_not_the_live_networks() -> None:
    setting = build(small_config(learning__rounds=1))
    before = {name: tensor.clone() for name, tensor in setting.initial.items()}
    learning = small_config().learning.model_dump(mode="json")
    request = Request("east-0", "learn", 1, setting.initial, {"learning": learning, "seed": 0})
    (reply,) = setting.federation.engine.run([request])
    assert not reply.error
    assert all(tensor.equal(before[name]) for name, tensor in setting.initial.items())


def test_one_worker_stays_in_this_process() -> None:
    assert isinstance(build(small_config(workers=1)).federation.engine, InProcessEngine)
    assert not multiprocessing.active_children()


def test_several_workers_are_processes() -> None:
    engine = build(small_config(workers=2)).federation.engine
    assert isinstance(engine, ProcessEngine)
    assert len(multiprocessing.active_children()) == 2
    engine.close()
    assert not multiprocessing.active_children()


def test_the_observer_is_used() -> None:
    observer = Observer()
    assert build(small_config(), observer).federation.observer is observer


def test_threads_are_set() -> None:
    before = torch.get_num_threads()
    try:
        build(small_config(threads=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data__name": "nonsense"}, "nonsense"),
        ({"data__domains": ["nord"]}, r"no domain 'nord'.*'north'"),
        ({"clients__per_domain": 100}, r"Domain 'north' has 60.*100"),
        ({"backdoor__clients": ["nord"]}, r"backdoor\.clients.*'nord'.*'north'"),
        ({"backdoor__clients": ["east"], "backdoor__target": 3}, r"backdoor\.target=3.*0 to 2"),
        ({"device": "cuda:77"}, "device=cuda:77 is not available"),
        ({"workers": 2, "threads": 2}, "workers=2 cannot have threads=2"),
    ],
)
def test_what_cannot_be_built_starts_no_process(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(small_config(**{"workers": 2, "threads": 0, **change}))
    assert not multiprocessing.active_children()


def test_a_federation_is_closed_when_it_is_no_longer_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(InProcessEngine, "close", lambda _: closed.append(True))
    with opened(small_config()) as setting:
        assert setting.federation.clients
        assert closed == []
    assert closed == [True]


def test_one_that_is_open_already_stays_and_gets_an_empty_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = build(small_config())
    setting.federation.ledger.record("before", Cost(bytes_up=1))
    monkeypatch.setattr(InProcessEngine, "close", lambda _: pytest.fail("closed"))
    with opened(small_config(), setting=setting) as given:
        assert given is setting
        assert given.federation.ledger.totals == {}
