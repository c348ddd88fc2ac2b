"""The evidence once more, from the model that is in service now."""

from typing import Any

from foul.config.schema import Config
from foul.erasure.asking import federation_of
from foul.erasure.discard import discard_model
from foul.erasure.evidence import Figures, judge, measure
from foul.erasure.fingerprint import fingerprint
from foul.erasure.issuing import issue_missing
from foul.erasure.policy import load_policy
from foul.erasure.receipts import require_signing
from foul.erasure.records import Request
from foul.erasure.requests import find_request
from foul.erasure.state import State
from foul.erasure.statements import costs_of
from foul.erasure.store import Store
from foul.errors import UserError
from foul.federation.build import Setting
from foul.federation.observer import Observer
from foul.runs.checkpoint import load_tensors
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import unlearn


def verify(
    store: Store,
    number: int,
    retrain: bool = False,
    observer: Observer | None = None,
    config: Config | None = None,
) -> dict[str, Any]:
    """Measure the model in service with respect to a request that was served.

    The erased clients are asked a last time, for measurements only; if they do not answer, their
    figures are missing. Noted in the ledger, with a receipt of its own.

    Args:
        retrain: also retrain without them, for comparison; what is made for it is removed.
        config: the run's configuration with other settings of the machine (device, engine).

    Returns:
        What the ledger notes, and the number of the receipt.

    Raises:
        UserError: there is no such request, it was not served, its clients were readmitted, or no
            receipt can be signed.
    """
    observer, config = observer or Observer(), config or store.folder.config()
    with store.serving():
        request = _served(store.state(), number)
        require_signing(store.path)
        state = store.sync()
        with federation_of(store, state, request.clients, config, observer) as setting:
            told = _measured(store, state, request, setting, config)
            if retrain:
                told |= _retrained(store, request, setting, config, observer)
        store.append("verified", told)
        issue_missing(store, store.state())
    return {**told, "receipt": store.state().requests[number].receipts[-1]}


def _served(state: State, number: int) -> Request:
    request = find_request(state, number)
    if request.state == "withdrawn":
        raise UserError(f"{request.id} is withdrawn: nothing was erased that could be verified")
    if request.state != "done":
        raise UserError(
            f"{request.id} is {request.state}: there is nothing to verify yet",
            f"Serve it first: foul erase run RUN {number}",
        )
    back = [client for client in request.clients if client not in state.erased]
    if back:
        raise UserError(
            f"{', '.join(back)} was readmitted since, so nothing is claimed of {request.id} now"
        )
    return request


def _measured(
    store: Store, state: State, request: Request, setting: Setting, config: Config
) -> dict[str, Any]:
    job = state.jobs[request.job or 0]
    tensors, _ = store.folder.load_model("learned")
    now = fingerprint(tensors)
    before: Figures = job.evidence[str(request.number)]["before"]
    target = _target(request, setting)
    after = measure(setting, config, tensors, target, not request.departed)
    checks = judge(before, after, load_policy(store.path).accept, job.exact)
    known = now == state.current.hash
    return {
        "request": request.number,
        "version": state.current.number,
        "hash": now,
        "known": known,
        "before": before,
        "after": after,
        "checks": [check.to_dict() for check in checks],
        "passed": known and all(check.passed for check in checks),
    }


def _target(request: Request, setting: Setting) -> ForgetRequest:
    clients = setting.federation.clients
    own = tuple(client for client in clients if client.id in request.clients)
    others = tuple(client for client in clients if client.id not in request.clients)
    return ForgetRequest(request.text, own, others)


def _retrained(
    store: Store, request: Request, setting: Setting, config: Config, observer: Observer
) -> dict[str, Any]:
    """The same figures of a model that never saw them, and what it took."""
    text = f"client:{','.join(request.clients)}"
    result = unlearn(
        store.folder.path,
        text,
        "retrain",
        (),
        observer,
        setting=setting,
        without=setting.federation.without,
        config=config,
        measured=False,
    )
    tensors, _ = load_tensors(store.folder.path / result["model"])
    target = _target(request, setting)
    figures = measure(setting, config, tensors, target, not request.departed)
    with store.folder.lock():
        discard_model(store.folder, "retrain", text)
    return {"retrain": figures, "retrain_costs": costs_of(result)}
