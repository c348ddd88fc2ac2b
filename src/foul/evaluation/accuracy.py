"""Accuracy of a model over the clients' samples, per client, per domain and in all."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import ClientInfo, Tensors
from foul.models import deployed_state

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Score:
    """Counts of one split; sums of scores are scores of the union."""

    samples: int = 0
    correct: int = 0
    causal_correct: int = 0
    loss: float = 0.0

    def __add__(self, other: "Score") -> "Score":
        return Score(
            self.samples + other.samples,
            self.correct + other.correct,
            self.causal_correct + other.causal_correct,
            self.loss + other.loss,
        )

    def to_dict(self) -> dict[str, Any]:
        """Fractions of 1; nothing where there are no samples."""
        if self.samples == 0:
            return {"samples": 0, "accuracy": None, "causal_accuracy": None, "loss": None}
        return {
            "samples": self.samples,
            "accuracy": self.correct / self.samples,
            "causal_accuracy": self.causal_correct / self.samples,
            "loss": self.loss / self.samples,
        }


@dataclass(frozen=True)
class Accuracies:
    """Scores of every client and split that answered."""

    clients: dict[str, dict[str, Score]]
    domains: dict[str, str]
    """Client id -> domain."""
    missing: dict[str, str] = field(default_factory=dict)
    """Clients that did not answer, and why."""

    def total(self, split: str, clients: Iterable[str] | None = None) -> Score:
        """The score over all samples of these clients (default: all)."""
        chosen = self.clients if clients is None else clients
        return sum((self.clients[client][split] for client in chosen), Score())

    def by_domain(self, split: str) -> dict[str, Score]:
        scores: defaultdict[str, Score] = defaultdict(Score)
        for client, splits in self.clients.items():
            scores[self.domains[client]] += splits[split]
        return dict(scores)

    def to_dict(self) -> dict[str, Any]:
        splits = next(iter(self.clients.values()), {})
        return {
            split: {
                "all": self.total(split).to_dict(),
                "domains": {d: s.to_dict() for d, s in self.by_domain(split).items()},
                "clients": {c: s[split].to_dict() for c, s in self.clients.items()},
            }
            for split in splits
        }


def evaluate(
    federation: Federation,
    tensors: Tensors,
    *,
    round: int = 0,
    splits: Sequence[str] = SPLITS,
    clients: Sequence[ClientInfo] | None = None,
) -> Accuracies:
    """Send the deployed model to the clients and collect their scores."""
    asked = federation.clients if clients is None else clients
    scores, log = {}, RoundLog()
    for reply in federation.ask(
        "evaluate",
        asked,
        deployed_state(tensors),
        {"splits": list(splits)},
        round=round,
        stage=EVALUATION,
        log=log,
    ):
        scores[reply.client] = {split: Score(**reply.numbers[split]) for split in splits}
    return Accuracies(scores, {client.id: client.domain for client in asked}, log.failures)
