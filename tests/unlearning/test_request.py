import pytest

from foul.errors import UserError
from foul.federation.messages import ClientInfo
from foul.unlearning import ForgetRequest

CLIENTS = tuple(
    ClientInfo(f"{domain}-{number}", domain, {"train": 9})
    for domain in ("east", "north", "real-world")
    for number in range(2)
)


@pytest.mark.parametrize(
    ("text", "forget"),
    [
        ("domain:east", {"east-0", "east-1"}),
        ("domain:Real World", {"real-world-0", "real-world-1"}),
        ("domain:east, north", {"east-0", "east-1", "north-0", "north-1"}),
        ("client:north-1", {"north-1"}),
        ("client:north-1,east-0,", {"north-1", "east-0"}),
        ("client:north-1,north-1", {"north-1"}),
    ],
)
def test_clients_are_told_apart(text: str, forget: set[str]) -> None:
    request = ForgetRequest.parse(text, CLIENTS)
    assert request.forget_ids == forget
    assert {client.id for client in request.retain} == {c.id for c in CLIENTS} - forget
    # In the order of the federation, whatever the order of the request.
    assert list(request.forget) == [c for c in CLIENTS if c.id in forget]


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("domain:east", "domain:east"),
        ("client:north-1", "client:north-1"),
        ("domain:Real World", "domain:real-world"),
        ("domain:north,east", "domain:east,north"),
        ("client: north-1 ,east-0,", "client:east-0,north-1"),
        ("client:east-0,north-1,east-0", "client:east-0,north-1"),
    ],
)
def test_the_same_clients_are_the_same_request(typed: str, text: str) -> None:
    request = ForgetRequest.parse(typed, CLIENTS)
    assert request.text == text
    assert ForgetRequest.parse(text, CLIENTS) == request


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("domain:nord", "There is no domain 'nord'", "Did you mean 'north'?"),
        ("client:east-7", "There is no client 'east-7'", "east-"),
        ("client:east", "There is no client 'east'", "east-"),
        ("domain:east,zzzzzz", "'zzzzzz'", "Choose one of: east, north, real-world."),
        ("domain:east,north,real-world", "forgets all 6 clients", "Retain at least one"),
        ("domain:", "forgets nobody", "Name at least one domain"),
        ("client: , ", "forgets nobody", "Name at least one client"),
        ("", "does not say whom", "domain:NAME or client:ID"),
        ("east", "does not say whom", "domain:NAME or client:ID"),
        ("domain", "does not say whom", "domain:NAME or client:ID"),
        ("style:east", "does not say whom", "domain:NAME or client:ID"),
    ],
)
def test_what_cannot_be_forgotten_is_said_with_a_remedy(
    text: str, message: str, remedy: str
) -> None:
    with pytest.raises(UserError) as caught:
        ForgetRequest.parse(text, CLIENTS)
    assert message in str(caught.value)
    assert remedy in str(caught.value)
