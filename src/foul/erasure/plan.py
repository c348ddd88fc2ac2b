"""The plan of an erasure: who can serve it, what it takes, what goes, what will be shown."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from safetensors import safe_open

from foul.erasure.estimates import Estimate, Estimator, Network
from foul.erasure.inventory import inventory
from foul.erasure.policy import load_policy
from foul.erasure.records import WAITING, Request
from foul.erasure.requests import find_request, infos
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.errors import UserError
from foul.names import hint
from foul.runs.folder import RunFolder
from foul.unlearning.case_of_run import learned_scores
from foul.unlearning.controls import Continue, DoNothing, Retrain
from foul.unlearning.fats import Fats
from foul.unlearning.method import Method
from foul.unlearning.methods import METHODS, make_method
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import check

EXACT = (Retrain, Fats)
"""Methods whose model is blind to the forgotten data, bit for bit."""
EVIDENCE = (
    "accuracy on the forgotten clients' training and test data, before and after",
    "accuracy on the retained clients' training and test data, before and after",
    "membership attacks on the forgotten clients' samples: AUC with its 95 % interval",
    "what linear probes still read off the encoders about the forgotten labels",
    "hashes of the weights before and after",
    "a search of the store's bytes for what was purged",
)


@dataclass(frozen=True)
class Offer:
    """One method for one request."""

    method: str
    options: tuple[str, ...]
    why_not: str
    """Why it cannot serve the request; empty if it can."""
    exact: bool
    estimate: Estimate | None

    @property
    def usable(self) -> bool:
        return not self.why_not

    def to_dict(self) -> dict[str, Any]:
        estimate = self.estimate.to_dict() if self.estimate else {}
        return {
            "method": self.method,
            "usable": self.usable,
            "why_not": self.why_not,
            "options": list(self.options),
            "exact": self.exact,
            **estimate,
        }


class Planner:
    """Plans erasures from the model in service."""

    def __init__(self, store: Store, state: State) -> None:
        self._folder, self._state = store.folder, state
        self.policy = load_policy(store.path)
        self._config = store.folder.config()
        facts = store.folder.facts()
        self._rounds = store.folder.load_model("learned")[1]["round"]
        classes, image_size = len(facts["classes"]), facts["image_size"]
        self._network = Network.of(self._config.model, classes, image_size)
        self._scores = learned_scores(store.folder)

    def offers(self, clients: Sequence[str], departed: bool) -> list[Offer]:
        """Every method that erases, the usable ones first, cheapest first."""
        request = forget_request(self._state, clients)
        names = [
            name
            for name, entry in METHODS.items()
            # Neither controls nor variants, which are for comparisons.
            if not entry.note and not is_control(name)
        ]
        offers = [self.offer(name, (), request, departed) for name in names]
        return sorted(
            offers, key=lambda o: (not o.usable, o.estimate.seconds if o.estimate else 0.0)
        )

    def offer(
        self, name: str, options: Sequence[str], request: ForgetRequest, departed: bool
    ) -> Offer:
        """One method; FOUL gets `departed=true` where its clients are gone and updates are kept."""
        method, chosen = make_method(name, options), tuple(options)
        if departed and method.needs.forget_online and hasattr(method.options, "departed"):
            chosen = (*chosen, "departed=true")
            method = make_method(name, chosen)
        why_not = self._why_not(name, method, request, departed)
        estimator = Estimator(self._state.basis, self._network, request, self._rounds, self._scores)
        estimate = None if why_not else estimator.estimate(method)
        return Offer(name, chosen, why_not, isinstance(method, EXACT), estimate)

    def recommended(self, offers: Sequence[Offer]) -> tuple[Offer, str]:
        """The first of the policy's preference that can serve the request, and why; an exact one
        of them instead, if it is no dearer.

        Raises:
            UserError: none of them can.
        """
        by_name = {offer.method: offer for offer in offers}
        for name in self.policy.methods.prefer:
            if name not in METHODS:
                raise UserError(f"methods.prefer: no method '{name}'", hint(name, METHODS))
        able = [by_name[n] for n in self.policy.methods.prefer if n in by_name]
        able = [offer for offer in able if offer.usable]
        if not able:
            raise UserError(
                f"None of {', '.join(self.policy.methods.prefer)} can serve this request",
                "Name another with --method, or add it to methods.prefer of the policy.",
            )
        first = able[0]
        for offer in able:
            if offer.exact and not first.exact and _no_dearer(offer, first):
                return offer, f"exact, and no dearer than {first.method}"
        return first, self._reason(first, by_name.get("retrain"))

    def _reason(self, offer: Offer, retrain: Offer | None) -> str:
        order = ", ".join(self.policy.methods.prefer)
        reason = f"the first of {order} (methods.prefer) that can serve it"
        if offer.exact:
            return f"{reason}; exact: the new model never saw them"
        if offer.estimate and retrain and retrain.estimate and retrain.estimate.bytes:
            share = 100 * offer.estimate.bytes / retrain.estimate.bytes
            reason += f"; about {share:.0f} % of the traffic of retraining"
        return f"{reason}; approximate: the evidence decides whether it is accepted"

    def _why_not(
        self, name: str, method: Method[Any], request: ForgetRequest, departed: bool
    ) -> str:
        needs, config = method.needs, self._config
        try:
            check(name, needs, config.learning.objective, config.model.head, [])
        except UserError as error:
            return error.what
        if needs.forget_online and departed:
            return "the forgotten clients would have to take part, and they are out of reach"
        if needs.own_learning and departed:
            return "it learns with all clients first, and the forgotten ones are out of reach"
        missing = [c.id for c in request.forget if not _has_delta(self._folder, c.id)]
        if needs.stored_deltas and missing:
            return f"no stored update of {', '.join(missing)} (federation.keep_deltas)"
        if needs.history and not _has_history(self._folder, request):
            return "no sum of contributions of exactly these clients (federation.history)"
        return ""


def _no_dearer(one: Offer, other: Offer) -> bool:
    """In traffic and in time."""
    if one.estimate is None or other.estimate is None:
        return False
    less = one.estimate.bytes <= other.estimate.bytes
    return less and one.estimate.seconds <= other.estimate.seconds


def plan_request(store: Store, number: int) -> dict[str, Any]:
    """Plan a request; only its state changes.

    Raises:
        UserError: there is no such request, or it does not wait to be served.
    """
    state = store.state()
    request = _plannable(store, state, number)
    plan = make_plan(Planner(store, state), store, state, request)

    def decide(now: State) -> dict[str, Any]:
        # Somebody may have begun to serve it, or withdrawn it, while the plan was made.
        _plannable(store, now, number)
        return {"request": number, "plan": plan}

    store.decide("planned", decide)
    return plan


def _plannable(store: Store, state: State, number: int) -> Request:
    request = find_request(state, number)
    if request.state not in WAITING:
        raise UserError(
            f"{request.id} is {request.state}; there is nothing to plan",
            f"See it with: foul erase show {store.folder.path} {number}",
        )
    return request


def make_plan(planner: Planner, store: Store, state: State, request: Request) -> dict[str, Any]:
    """What serving this request now would mean."""
    clients = state.clients_of(request)
    offers = planner.offers(clients, request.departed)
    best, reason = planner.recommended(offers)
    items = inventory(store.folder, clients, planner.policy.purge)
    return {
        "request": request.id,
        "clients": list(clients),
        "departed": request.departed,
        "base": state.current.number,
        "hash": state.current.hash,
        "methods": [offer.to_dict() for offer in offers],
        "recommended": best.method,
        "reason": reason,
        "purge": [item.to_dict() for item in items],
        "evidence": list(EVIDENCE),
        "policy": planner.policy.model_dump(mode="json"),
        "together": _together(planner, state, request, best),
    }


def _together(planner: Planner, state: State, request: Request, best: Offer) -> dict[str, Any]:
    """Other requests that wait, and whether serving them with this one would be cheaper."""
    others = [
        other
        for other in state.waiting()
        if other.number != request.number and other.departed == request.departed
    ]
    if not others:
        return {"requests": [], "cheaper": False}
    return {
        "requests": [other.id for other in others],
        "cheaper": cheaper_together(planner, state, [request, *others], best.method),
    }


def cheaper_together(
    planner: Planner, state: State, requests: Sequence[Request], method: str
) -> bool:
    """Whether one unlearning for all of them takes less than one for each; never for everybody."""
    union = sorted({client for request in requests for client in state.clients_of(request)})
    if len(union) >= len(state.active):
        return False
    departed = any(request.departed for request in requests)

    def seconds(clients: Sequence[str]) -> float:
        offer = planner.offer(method, (), forget_request(state, clients), departed)
        return offer.estimate.seconds if offer.estimate else float("inf")

    return seconds(union) <= sum(seconds(state.clients_of(request)) for request in requests)


def is_control(name: str) -> bool:
    """Whether this method is there to be compared with, not to forget."""
    return name in METHODS and issubclass(METHODS[name].method, DoNothing | Continue)


def forget_request(state: State, clients: Sequence[str]) -> ForgetRequest:
    """The request for these clients among all that are active.

    Raises:
        UserError: nobody would be left.
    """
    return ForgetRequest.parse(f"client:{','.join(clients)}", infos(state.active))


def _has_delta(folder: RunFolder, client: str) -> bool:
    return (folder.deltas / f"{client}.safetensors").is_file()


def _has_history(folder: RunFolder, request: ForgetRequest) -> bool:
    """Whether the run added up what exactly these clients contributed."""
    if not folder.history_file.is_file():
        return False
    with safe_open(folder.history_file, "pt") as file:
        groups = json.loads((file.metadata() or {}).get("foul", "{}")).get("groups", ())
    domains = {client.domain for client in request.forget}
    whole = [c for c in (*request.forget, *request.retain) if c.domain in domains]
    if len(request.forget) == 1 and f"client:{request.forget[0].id}" in groups:
        return True
    return (
        len(domains) == 1
        and len(whole) == len(request.forget)
        and f"domain:{request.forget[0].domain}" in groups
    )
