"""What the entries of a ledger add up to: clients, requests, jobs, model versions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

from foul.erasure.ledger import Body, Entry

OPEN = ("received", "planned", "running", "verifying", "failed")
"""States of a request that still has to be served. A failed one can be run again."""
WAITING = ("received", "planned", "failed")
"""States in which a request can be run or withdrawn."""

Spans = tuple[tuple[int, int], ...]
"""First and last of each unbroken row of rounds."""


@dataclass(frozen=True)
class Client:
    """A client of the federation, as it was when the ledger began."""

    id: str
    domain: str
    samples: dict[str, int]
    rounds: Spans = ()
    """Rounds of the learning stage in which it took part."""
    status: str = "active"
    """`active`, `erased` or `readmitted`."""
    since: str = ""
    """When it got this status."""


@dataclass(frozen=True)
class Request:
    """Somebody is to be erased."""

    number: int
    text: str
    """`client:ID` or `domain:NAME`, as it was asked for."""
    clients: tuple[str, ...]
    reason: str
    received: str
    due: str
    departed: bool = False
    """Whether its clients cannot be reached any more."""
    state: str = "received"
    note: str = ""
    """Why it failed or was withdrawn."""
    job: int | None = None
    ended: str | None = None
    plan: Body | None = None
    receipts: tuple[int, ...] = ()
    history: tuple[tuple[str, str, str], ...] = ()
    """Each state it was in: which, since when, and a note."""

    @property
    def id(self) -> str:
        return f"R-{self.number:04d}"

    @property
    def open(self) -> bool:
        return self.state in OPEN

    def overdue(self, today: date) -> bool:
        """Whether it should have been served by now."""
        return self.open and today > date.fromisoformat(self.due)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}


@dataclass(frozen=True)
class Job:
    """One unlearning that serves some requests together."""

    number: int
    requests: tuple[int, ...]
    clients: tuple[str, ...]
    method: str
    options: tuple[str, ...]
    base: int
    """The version it starts from."""
    started: str
    policy: Body
    phase: str = "unlearning"
    """`unlearning`, `verifying`, `promoting`, `purging`, `receipts`, `done` or `failed`."""
    exact: bool = False
    model: str = ""
    """Hash of the model it made."""
    file: str = ""
    result: Body = field(default_factory=dict)
    evidence: Body = field(default_factory=dict)
    """By the request's number: figures before and after, checks, whether they passed."""
    purge: Body = field(default_factory=dict)
    version: int | None = None
    ended: str | None = None
    note: str = ""

    @property
    def finished(self) -> bool:
        return self.phase in ("done", "failed")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Version:
    """A model that was in service."""

    number: int
    hash: str
    origin: str
    """`learned`, `erasure` or `relearned`."""
    made: str
    traces: dict[str, str]
    """Client -> `trained` (it took part) or `unlearned` (it took part in a model before, and was
    then unlearned, not retrained without)."""
    parent: int | None = None
    job: int | None = None
    method: str = ""
    exact: bool = False
    rounds: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class State:
    """Everything that is known after the last entry."""

    federation: str = ""
    basis: Body = field(default_factory=dict)
    """What learning took, as measured: the ground of estimates."""
    clients: dict[str, Client] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=list)
    erased: dict[str, int] = field(default_factory=dict)
    """Client -> the job that erased it; not those who were readmitted."""
    readmitted: list[Body] = field(default_factory=list)
    verified: list[Body] = field(default_factory=list)
    """What each verification found, when, and which one of its request it was (`count`, from 1)."""
    head: Entry | None = None

    @property
    def current(self) -> Version:
        """The version in service."""
        return self.versions[-1]

    @property
    def active(self) -> list[Client]:
        """Everybody who may take part."""
        return [client for client in self.clients.values() if client.id not in self.erased]

    @property
    def unfinished(self) -> Job | None:
        """The job that was begun and has not ended, if there is one."""
        return next((job for job in self.jobs.values() if not job.finished), None)

    def waiting(self) -> list[Request]:
        """Requests that nobody has begun to serve, oldest first; failed ones are for the asking."""
        return [r for r in self.requests.values() if r.state in ("received", "planned")]

    def clients_of(self, request: Request) -> tuple[str, ...]:
        """Whom this request still has to erase."""
        return tuple(client for client in request.clients if client not in self.erased)


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
    state.readmitted.append({**body, "time": entry.time})
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
