"""Which requests the next job serves, and by which method."""

from collections.abc import Sequence
from typing import Any

from foul.erasure.plan import Offer, Planner, cheaper_together, forget_request, is_control
from foul.erasure.records import WAITING, Job, Request
from foul.erasure.requests import find_request
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.errors import UserError


def begin_job(
    store: Store, numbers: Sequence[int] | None, method: str | None, options: Sequence[str]
) -> Job | None:
    """Begin the next job, if there is anything to do."""
    state = store.state()
    if numbers is None:
        waiting = state.waiting()
        chosen = [r for r in waiting if r.departed == waiting[0].departed] if waiting else []
    else:
        chosen = [_servable(state, number) for number in numbers]
    if not chosen:
        return None
    planner = Planner(store, state)
    if numbers is None and len(chosen) > 1:
        one = choose_method(planner, state, chosen[:1], method, options)
        if not cheaper_together(planner, state, chosen, one.method):
            chosen = chosen[:1]
    offer = choose_method(planner, state, chosen, method, options)
    clients = _union(state, chosen)
    covered = [
        request
        for request in state.requests.values()
        if request.state in WAITING
        and request not in chosen
        and state.clients_of(request)
        and set(state.clients_of(request)) <= set(clients)
    ]
    number = len(state.jobs) + 1
    body: dict[str, Any] = {
        "job": number,
        "requests": sorted(request.number for request in (*chosen, *covered)),
        "clients": clients,
        "method": offer.method,
        "options": list(offer.options),
        "exact": offer.exact,
        "base": state.current.number,
        "policy": planner.policy.model_dump(mode="json"),
    }
    store.decide("started", lambda now: _still_waiting(now, body))
    return store.state().jobs[number]


def _still_waiting(state: State, body: dict[str, Any]) -> dict[str, Any]:
    """A request may have been withdrawn while the plan was made."""
    for number in body["requests"]:
        _servable(state, number)
    return body


def _servable(state: State, number: int) -> Request:
    request = find_request(state, number)
    if request.state not in WAITING:
        raise UserError(
            f"{request.id} is {request.state} and cannot be run",
            "`foul erase list` shows what waits.",
        )
    return request


def choose_method(
    planner: Planner,
    state: State,
    requests: Sequence[Request],
    method: str | None,
    options: Sequence[str],
) -> Offer:
    """The method that serves these requests.

    Raises:
        UserError: it cannot, or nobody would be left.
    """
    clients, departed = _union(state, requests), any(r.departed for r in requests)
    target = forget_request(state, clients)
    if method is None:
        offer, _ = planner.recommended(planner.offers(clients, departed))
        return planner.offer(offer.method, options, target, departed) if options else offer
    if is_control(method):
        raise UserError(
            f"'{method}' is a control for comparisons: it makes no model forget",
            "Choose a method of `foul erase plan`.",
        )
    offer = planner.offer(method, options, target, departed)
    if not offer.usable:
        raise UserError(
            f"'{method}' cannot serve this: {offer.why_not}",
            "`foul erase plan` says which methods can.",
        )
    return offer


def _union(state: State, requests: Sequence[Request]) -> list[str]:
    clients = sorted({c for request in requests for c in state.clients_of(request)})
    if not clients:
        raise UserError(
            f"Everybody in {', '.join(r.id for r in requests)} was erased already",
            "Withdraw the request: foul erase withdraw RUN REQUEST",
        )
    return clients
