"""What clients say of the model that a round started from."""

from foul.federation.messages import Numbers
from foul.unlearning.foul.counts import Counts
from foul.unlearning.request import ForgetRequest


class Evidence:
    """How well a model does, over retain and over forget clients."""

    def __init__(self, scores: dict[str, Numbers], request: ForgetRequest) -> None:
        self._scores = scores
        self._forget = request.forget_ids
        self._domains = {client.id: client.domain for client in request.forget + request.retain}

    def counts(self, role: str, split: str) -> Counts:
        """Over all samples of the retain or the forget clients."""
        forget = role == "forget"
        return self._counts([c for c in self._scores if (c in self._forget) == forget], split)

    def accuracy(self, role: str, split: str) -> float | None:
        """Over all samples of the retain or the forget clients; None without any."""
        return _known(self.counts(role, split))

    def held_out(self) -> dict[str, Counts]:
        """Over the held-out samples of all clients of each domain."""
        return {
            domain: self._counts(
                [c for c in self._scores if self._domains[c] == domain], "validation"
            )
            for domain in sorted(set(self._domains.values()))
        }

    def _counts(self, clients: list[str], split: str) -> Counts:
        scores = [s[split] for c in clients if split in (s := self._scores[c])]
        return Counts(sum(s["correct"] for s in scores), sum(s["samples"] for s in scores))

    def to_dict(self) -> dict[str, float]:
        """Accuracy of every role and split that somebody told of."""
        values = {
            f"{role}_{split}": self.accuracy(role, split)
            for role in ("forget", "retain")
            for split in ("train", "validation")
        }
        return {name: value for name, value in values.items() if value is not None}


def _known(counts: Counts) -> float | None:
    return counts.share if counts.samples else None
