"""The cost ledger: what crossed the interface and what was computed, by stage."""

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Bytes as seen from the clients (down: received), FLOPs, seconds of work."""

    bytes_down: int = 0
    bytes_up: int = 0
    flops_client: int = 0
    flops_server: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def bytes(self) -> int:
        return self.bytes_down + self.bytes_up

    @property
    def flops(self) -> int:
        return self.flops_client + self.flops_server

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Ledger:
    """Running totals per stage (`learning`, `evaluation`, a method's name)."""

    def __init__(self, totals: dict[str, dict[str, Any]] | None = None) -> None:
        self.totals = {stage: Cost(**cost) for stage, cost in (totals or {}).items()}

    def record(self, stage: str, cost: Cost) -> None:
        self.totals[stage] = self.totals.get(stage, Cost()) + cost

    def total(self, stage: str) -> Cost:
        return self.totals.get(stage, Cost())

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return {stage: cost.to_dict() for stage, cost in sorted(self.totals.items())}
