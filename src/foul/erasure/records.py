"""What a ledger tells of: clients, requests, jobs, model versions."""

from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

from foul.erasure.ledger import Body

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
