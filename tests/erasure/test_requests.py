from datetime import date, timedelta

import pytest

from foul.erasure.clock import months_later, today
from foul.erasure.requests import file_request, find_request, parse_number, withdraw
from foul.erasure.store import Store
from foul.errors import UserError


def test_a_request_names_its_clients_and_is_due_in_a_month(store: Store) -> None:
    one = file_request(store, "domain:North", "hospital left")
    assert (one.id, one.state, one.reason) == ("R-0001", "received", "hospital left")
    assert one.clients == ("north-0", "north-1", "north-2")
    assert one.due == months_later(today(), 1).isoformat()
    two = file_request(store, "client:EAST 1", due=today(), departed=True)
    assert (two.number, two.clients, two.departed) == (2, ("east-1",), True)
    assert two.history == (("received", two.received, ""),)
    assert list(store.state().requests) == [1, 2]


def test_the_clock_runs_until_it_is_served(store: Store) -> None:
    asked = file_request(store, "client:east-0", due=today() + timedelta(3))
    due = date.fromisoformat(asked.due)
    assert not asked.overdue(due)
    assert asked.overdue(due + timedelta(1))
    withdrawn = withdraw(store, 1)
    assert not withdrawn.overdue(due + timedelta(1))


@pytest.mark.parametrize(
    ("forget", "told"),
    [
        ("client:nort-1", "no client 'nort-1'.*Did you mean 'north-1'"),
        ("domain:west", "no domain 'west'"),
        ("client:", "forgets nobody"),
        ("north", "does not say whom"),
        ("domain:north,east", "forgets all 6 clients"),
    ],
)
def test_whom_nobody_knows_or_everybody(store: Store, forget: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        file_request(store, forget)
    assert not store.state().requests


def test_an_erased_client_cannot_be_asked_for_again(served: Store) -> None:
    with pytest.raises(UserError, match=r"'north-1' was erased already \(20.*foul erase lineage"):
        file_request(served, "client:North-1")
    assert file_request(served, "domain:north").clients == ("north-0", "north-2")


def test_a_due_date_in_the_past(store: Store) -> None:
    with pytest.raises(UserError, match="is in the past"):
        file_request(store, "client:east-0", due=today() - timedelta(1))


def test_asking_twice_is_refused_but_asking_for_more_is_not(store: Store) -> None:
    file_request(store, "client:north-0,north-1")
    for forget in ("client:north-0", "client:north-1,north-0"):
        with pytest.raises(UserError, match=r"R-0001 asks for that already \(received\)"):
            file_request(store, forget)
    assert file_request(store, "domain:north").number == 2
    withdraw(store, 2)
    withdraw(store, 1)
    assert file_request(store, "client:north-0").number == 3


def test_withdrawing(store: Store, served: Store) -> None:
    file_request(store, "client:east-0")
    taken = withdraw(store, 1, "they changed their mind")
    assert (taken.state, taken.note) == ("withdrawn", "they changed their mind")
    assert [step[0] for step in taken.history] == ["received", "withdrawn"]
    for which, told in ((store, "R-0001 is withdrawn"), (served, "R-0001 is done")):
        with pytest.raises(UserError, match=f"{told} and cannot be withdrawn"):
            withdraw(which, 1)
    with pytest.raises(UserError, match=r"no request R-0009.*R-0001"):
        find_request(store.state(), 9)


@pytest.mark.parametrize("text", ["3", "R-3", "r-0003", "R3"])
def test_a_number_as_people_write_it(text: str) -> None:
    assert parse_number(text) == 3


@pytest.mark.parametrize("text", ["", "R-", "three", "3.5"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(UserError, match="is no request"):
        parse_number(text)
