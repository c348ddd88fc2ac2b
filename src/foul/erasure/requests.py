"""Requests to erase somebody: filed, looked up, withdrawn."""

from collections.abc import Sequence
from datetime import date

from foul.erasure.clock import months_later, today
from foul.erasure.policy import load_policy
from foul.erasure.records import WAITING, Client, Request
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.errors import UserError
from foul.federation.messages import ClientInfo
from foul.names import find, hint
from foul.unlearning.request import ForgetRequest


def file_request(
    store: Store,
    forget: str,
    reason: str = "",
    due: date | None = None,
    departed: bool = False,
) -> Request:
    """Note that somebody is to be erased; nothing else changes.

    Args:
        forget: `client:ID` or `domain:NAME`, several separated by commas.
        reason: why; it stays in the ledger, so name nobody in it.
        due: until when; default: the policy's clock.
        departed: its clients cannot be reached any more.

    Raises:
        UserError: an unknown or erased client, everyone, a due date in the past, or all of them
            are asked for already.
    """
    day = due or months_later(today(), load_policy(store.path).clock.months)
    if day < today():
        raise UserError(f"The due date {day} is in the past", "Choose today or a later day.")

    def decide(state: State) -> dict[str, object]:
        clients = _resolve(store, state, forget)
        _refuse_repetition(store, state, clients)
        return {
            "request": len(state.requests) + 1,
            "text": forget,
            "clients": clients,
            "reason": reason,
            "due": day.isoformat(),
            "departed": departed,
        }

    entry = store.decide("filed", decide)
    return store.state().requests[entry.body["request"]]


def withdraw(store: Store, number: int, note: str = "") -> Request:
    """Take a request back that nobody has begun to serve.

    Raises:
        UserError: there is no such request, or it is too late.
    """

    def decide(state: State) -> dict[str, object]:
        request = find_request(state, number)
        if request.state not in WAITING:
            raise UserError(
                f"{request.id} is {request.state} and cannot be withdrawn",
                "Only a request that waits, or has failed, can be.",
            )
        return {"request": number, "note": note}

    store.decide("withdrawn", decide)
    return store.state().requests[number]


def find_request(state: State, number: int) -> Request:
    """The request of this number.

    Raises:
        UserError: there is none.
    """
    if number not in state.requests:
        have = ", ".join(request.id for request in state.requests.values()) or "none"
        raise UserError(f"There is no request R-{number:04d}", f"There are: {have}.")
    return state.requests[number]


def parse_number(text: str) -> int:
    """The number of a request as people write it: 3, R-3 or R-0003.

    Raises:
        UserError: it is none of these.
    """
    digits = text.upper().removeprefix("R").removeprefix("-")
    if not digits.isdecimal():
        raise UserError(f"'{text}' is no request", "Write its number, like 3 or R-0003.")
    return int(digits)


def infos(clients: Sequence[Client]) -> list[ClientInfo]:
    """Clients of the ledger as the federation tells of them."""
    return [ClientInfo(client.id, client.domain, client.samples) for client in clients]


def _resolve(store: Store, state: State, forget: str) -> list[str]:
    """Ids of the clients that are asked for."""
    kind, names = ForgetRequest.split(forget)
    if kind == "client":
        names = [_not_erased(store, state, name) for name in names]
    request = ForgetRequest.parse(f"{kind}:{','.join(names)}", infos(state.active))
    return sorted(request.forget_ids)


def _not_erased(store: Store, state: State, name: str) -> str:
    """The id of the client of this name, looked for among the erased ones too: their names must
    not mean somebody else's who is left."""
    known = find(name, state.clients)
    if known is None:
        raise UserError(f"There is no client '{name}' in this run", hint(name, state.clients))
    if known in state.erased:
        since = state.clients[known].since
        raise UserError(
            f"Client '{known}' was erased already ({since})",
            f"See what was done: foul erase lineage {store.folder.path} {known}",
        )
    return known


def _refuse_repetition(store: Store, state: State, clients: Sequence[str]) -> None:
    """Somebody must be new: else one erasure would be done twice."""
    for request in state.requests.values():
        if request.open and set(clients) <= set(request.clients):
            raise UserError(
                f"{', '.join(clients)}: {request.id} asks for that already ({request.state})",
                "Run it, or withdraw it first: "
                f"foul erase withdraw {store.folder.path} {request.number}",
            )
