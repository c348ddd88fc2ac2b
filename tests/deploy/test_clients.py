"""Which clients get a node."""

import pytest
from small_runs import small_config

from foul.deploy.clients import choose_clients
from foul.errors import UserError

CONFIG = small_config()


def test_few_clients_come_from_many_domains() -> None:
    assert choose_clients(CONFIG, 2, ()) == ["north-0", "east-0"]
    assert choose_clients(CONFIG, 3, ()) == ["north-0", "east-0", "north-1"]


def test_without_a_number_all_get_one() -> None:
    assert sorted(choose_clients(CONFIG, None, ())) == ["east-0", "east-1", "north-0", "north-1"]


def test_zero_is_a_server_alone() -> None:
    # Its data may be nowhere near: it is not loaded.
    assert choose_clients(small_config(data__name="folder", data__path="/nowhere"), 0, ()) == []


def test_named_clients_are_taken_once() -> None:
    assert choose_clients(CONFIG, None, ["east-1", "north-0", "east-1"]) == ["east-1", "north-0"]


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(UserError, match=r"--clients 5: the configuration has 4 clients"):
        choose_clients(CONFIG, 5, ())


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no client 'nort-0'\. Did you mean 'north-0'"):
        choose_clients(CONFIG, None, ["nort-0"])
