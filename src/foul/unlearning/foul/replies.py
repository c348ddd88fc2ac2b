"""What the clients of one of FOUL's rounds answered."""

import math

from foul.federation.federation import RoundLog
from foul.federation.messages import Numbers, Tensors
from foul.unlearning.foul.steering import weighted_mean
from foul.unlearning.request import ForgetRequest


class Replies:
    """What one round's clients answered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fairness = 0.0
        """The power of a client's loss in its share of a mean."""
        self.deltas: dict[str, Tensors] = {}
        self.weights: dict[str, float] = {}
        self.scores: dict[str, Numbers] = {}
        self.losses: dict[str, float] = {}
        self.start: Tensors = {}
        """Where forget clients start, if that is the centre: where the retain clients alone would
        lead."""
        self.log = RoundLog()

    def mean_losses(self, request: ForgetRequest) -> dict[str, float]:
        """What retain and what forget clients descended: the mean over samples, if any did."""
        means = {}
        for role, clients in {"retain": request.retain, "forget": request.forget}.items():
            told = [client.id for client in clients if client.id in self.losses]
            if told:
                weights = [self.weights[client] for client in told]
                means[role] = weighted_mean([self.losses[client] for client in told], weights)
        return means

    def sorted(self) -> tuple[list[str], list[Tensors], list[float]]:
        """Clients in the order of their names, their deltas and their shares of a mean."""
        clients = sorted(self.deltas)
        return clients, [self.deltas[c] for c in clients], self._shares(clients)

    def _shares(self, clients: list[str]) -> list[float]:
        """`n_u (L_u / mean L)^fairness`: samples, times how much is still lost on them. Who told no
        loss (its delta is an old one) counts as if it were the mean."""
        told = [self.losses[client] for client in clients if client in self.losses]
        mean = sum(told) / len(told) if told else 0.0
        if not 0.0 < mean < math.inf:
            return [self.weights[client] for client in clients]
        return [
            self.weights[client] * (self.losses.get(client, mean) / mean) ** self.fairness
            for client in clients
        ]
