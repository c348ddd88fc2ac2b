"""What clients say of the model that a round started from."""

from foul.federation.messages import Numbers
from foul.unlearning.request import ForgetRequest


class Evidence:
    """How well a model does, over retain and over forget clients."""

    def __init__(self, scores: dict[str, Numbers], request: ForgetRequest) -> None:
        self._scores = scores
        self._forget = request.forget_ids
        self._domains = {client.id: client.domain for client in request.forget + request.retain}

    def accuracy(self, role: str, split: str) -> float | None:
        """Over all samples of the retain or the forget clients; None without any."""
        forget = role == "forget"
        return self._share([c for c in self._scores if (c in self._forget) == forget], split)

    def held_out(self, domain: str) -> float | None:
        """Accuracy on the held-out samples of all clients of a domain; None without any."""
        return self._share([c for c in self._scores if self._domains[c] == domain], "validation")

    def _share(self, clients: list[str], split: str) -> float | None:
        scores = [s[split] for c in clients if split in (s := self._scores[c])]
        samples = sum(score["samples"] for score in scores)
        return sum(score["correct"] for score in scores) / samples if samples else None

    def to_dict(self) -> dict[str, float]:
        """Accuracy of every role and split that somebody told of."""
        values = {
            f"{role}_{split}": self.accuracy(role, split)
            for role in ("forget", "retain")
            for split in ("train", "validation")
        }
        return {name: value for name, value in values.items() if value is not None}
