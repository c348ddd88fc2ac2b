"""What the entries of a ledger add up to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from foul.erasure.ledger import Body, Entry
from foul.erasure.records import Client, Job, Request, Version
from foul.erasure.state import State


def fold(entries: Iterable[Entry]) -> State:
    """The state after these entries."""
    state = State()
    for entry in entries:
        _FOLDS[entry.kind](state, entry, entry.body)
        state.head = entry
    return state


def _adopted(state: State, entry: Entry, body: Body) -> None:
    state.federation, state.basis = body["federation"], body["basis"]
    for fact in body["clients"]:
        rounds = tuple((first, last) for first, last in body["participation"].get(fact["id"], []))
        state.clients[fact["id"]] = Client(
            fact["id"], fact["domain"], fact["samples"], rounds, since=entry.time
        )
    traces = {client.id: "trained" for client in state.clients.values() if client.rounds}
    state.versions = [
        Version(0, body["hash"], "learned", entry.time, traces, rounds=body["rounds"])
    ]


def _filed(state: State, entry: Entry, body: Body) -> None:
    number = body["request"]
    state.requests[number] = Request(
        number,
        body["text"],
        tuple(body["clients"]),
        body["reason"],
        entry.time,
        body["due"],
        body["departed"],
        history=(("received", entry.time, ""),),
    )


def _planned(state: State, entry: Entry, body: Body) -> None:
    _move(state, body["request"], entry, "planned", plan=body["plan"])


def _withdrawn(state: State, entry: Entry, body: Body) -> None:
    _move(state, body["request"], entry, "withdrawn", body["note"], ended=entry.time)


def _started(state: State, entry: Entry, body: Body) -> None:
    number = body["job"]
    state.jobs[number] = Job(
        number,
        tuple(body["requests"]),
        tuple(body["clients"]),
        body["method"],
        tuple(body["options"]),
        body["base"],
        entry.time,
        body["policy"],
        exact=body["exact"],
    )
    for request in body["requests"]:
        _move(state, request, entry, "running", job=number)


def _unlearned(state: State, entry: Entry, body: Body) -> None:
    told = {key: body[key] for key in ("model", "file", "result")}
    job = _advance(state, body, phase="verifying", **told)
    for request in job.requests:
        _move(state, request, entry, "verifying")


def _judged(state: State, entry: Entry, body: Body) -> None:
    phase = "promoting" if body["passed"] else "verifying"
    job = _advance(state, body, phase=phase, evidence=body["evidence"])
    if body["passed"]:
        # From here on it can only end well: they are erased, whatever happens to this process.
        for client in job.clients:
            state.erased[client] = job.number
            state.clients[client] = replace(
                state.clients[client], status="erased", since=entry.time
            )


def _failed(state: State, entry: Entry, body: Body) -> None:
    job = _advance(state, body, phase="failed", note=body["note"], ended=entry.time)
    for client in job.clients:
        # It was accepted, and then its model was lost.
        if state.erased.get(client) == job.number:
            del state.erased[client]
            state.clients[client] = replace(state.clients[client], status="active")
    for request in job.requests:
        _move(state, request, entry, "failed", body["note"])


def _promoted(state: State, entry: Entry, body: Body) -> None:
    job = _advance(state, body, phase="purging", version=body["version"])
    before = state.versions[job.base].traces
    # Everybody else helps to make it, also who was readmitted and has not learned since.
    traces = {client.id: "trained" for client in state.active}
    if not job.exact:
        traces = before | traces | {c: "unlearned" for c in job.clients if c in before}
    state.versions.append(
        Version(
            body["version"],
            body["hash"],
            "erasure",
            entry.time,
            traces,
            job.base,
            job.number,
            job.method,
            job.exact,
            job.result.get("rounds", 0),
        )
    )


def _purged(state: State, entry: Entry, body: Body) -> None:
    _advance(state, body, phase="receipts", purge=body["purge"])


def _issued(state: State, entry: Entry, body: Body) -> None:
    if body["request"] is not None:
        request = state.requests[body["request"]]
        receipts = (*request.receipts, body["receipt"])
        state.requests[request.number] = replace(request, receipts=receipts)


def _finished(state: State, entry: Entry, body: Body) -> None:
    job = _advance(state, body, phase="done", ended=entry.time)
    for request in job.requests:
        _move(state, request, entry, "done", ended=entry.time)


def _readmitted(state: State, entry: Entry, body: Body) -> None:
    client = body["client"]
    state.erased.pop(client, None)
    before = [told for told in state.readmitted if told["client"] == client]
    state.readmitted.append({**body, "time": entry.time, "count": len(before) + 1})
    state.clients[client] = replace(state.clients[client], status="readmitted", since=entry.time)


def _relearned(state: State, entry: Entry, body: Body) -> None:
    taught = {client: "trained" for client, rounds in body["participation"].items() if rounds}
    state.versions.append(
        Version(
            body["version"],
            body["hash"],
            "relearned",
            entry.time,
            state.current.traces | taught,
            state.current.number,
            rounds=body["rounds"],
        )
    )


def _verified(state: State, entry: Entry, body: Body) -> None:
    before = [told for told in state.verified if told["request"] == body["request"]]
    state.verified.append({**body, "time": entry.time, "count": len(before) + 1})


_FOLDS: Mapping[str, Callable[[State, Entry, Body], None]] = {
    "adopted": _adopted,
    "filed": _filed,
    "planned": _planned,
    "withdrawn": _withdrawn,
    "started": _started,
    "unlearned": _unlearned,
    "judged": _judged,
    "failed": _failed,
    "promoted": _promoted,
    "purged": _purged,
    "issued": _issued,
    "finished": _finished,
    "readmitted": _readmitted,
    "relearned": _relearned,
    "verified": _verified,
}
"""What each kind of entry changes."""


def _move(state: State, number: int, entry: Entry, to: str, note: str = "", **changes: Any) -> None:
    request = state.requests[number]
    history = (*request.history, (to, entry.time, note))
    state.requests[number] = replace(request, state=to, note=note, history=history, **changes)


def _advance(state: State, body: Body, **changes: Any) -> Job:
    job = replace(state.jobs[body["job"]], **changes)
    state.jobs[job.number] = job
    return job
