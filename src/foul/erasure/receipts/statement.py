"""What a receipt states: facts only, as the ledger has them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["erasure", "failure", "verification", "withdrawal", "readmission", "rotation"]


@dataclass(frozen=True)
class Asked:
    """A request: who is to be forgotten (`client:ID` or `domain:NAME`), when it came, by when."""

    id: str
    whom: str
    received: str
    due: str
    reason: str = ""


@dataclass(frozen=True)
class MethodUsed:
    """The method that served the requests; `version` is that of foul."""

    name: str
    version: str
    options: Mapping[str, Any]
    rounds: int
    engine: str = "in-process"
    seed: int | None = None


@dataclass(frozen=True)
class Models:
    """Hashes of weights: the model before, the one that was made (empty if none), the one that
    answers from now on."""

    before: str
    after: str
    in_service: str


@dataclass(frozen=True)
class Evidence:
    """A figure of the new model.

    Attributes:
        key: its name in `results.json`.
        what: in plain words; those of the report if empty.
        value: the figure.
        low: lower end of its 95 % interval.
        high: upper end.
        before: the same figure of the model before.
        retrain: the same figure of a model that was trained without the data.
        at_most: the largest value that the policy accepts.
        at_least: the smallest one.
        passed: whether the policy is met; None if it says nothing about this figure.
    """

    key: str
    what: str
    value: float | None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    retrain: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    passed: bool | None = None


@dataclass(frozen=True)
class Purged:
    """Something stored that is gone: what it was, and whether deleted, rebuilt or compacted."""

    what: str
    how: str
    files: int
    bytes: int


@dataclass(frozen=True)
class PurgeCheck:
    """How the store was searched for what had been there, and how often it was still found."""

    how: str
    files: int
    bytes: int
    found: int


@dataclass(frozen=True)
class Statement:
    """One event in the life of a federation.

    Attributes:
        kind: an erasure, a failed one, a verification, a withdrawn request, a readmission, or a new
            signing key.
        event: its unique name; an event has one receipt, however often it is issued.
        federation: whose event it is.
        happened: when, in UTC.
        outcome: how it ended, in a sentence.
        requests: what was asked; several if they were served together.
        clients: who was erased or readmitted.
        costs: by the names of `foul.federation.ledger.Cost`, and `rounds`, `wall_seconds`, `disk`.
        retrain_costs: the same of the model that was retrained to compare with, if one was.
        kept: what stays stored on purpose, and why, in sentences.
        new_key: of a rotation, the key that signs from now on.
    """

    kind: Kind
    event: str
    federation: str
    happened: str
    outcome: str
    requests: Sequence[Asked] = ()
    clients: Sequence[str] = ()
    method: MethodUsed | None = None
    models: Models | None = None
    evidence: Sequence[Evidence] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    retrain_costs: Mapping[str, float] = field(default_factory=dict)
    purged: Sequence[Purged] = ()
    purge_check: PurgeCheck | None = None
    kept: Sequence[str] = ()
    new_key: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
