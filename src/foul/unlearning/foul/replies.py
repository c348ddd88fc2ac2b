"""What the clients of one of FOUL's rounds answered."""

import math

from foul.federation.federation import RoundLog
from foul.federation.messages import Numbers, Tensors
from foul.unlearning.foul.steering import weighted_mean
from foul.unlearning.request import ForgetRequest

NO_LOSS = 1e-12
"""What a loss of 0 counts as: of clients that have all lost nothing, none may count for nothing."""


class Replies:
    """What one round's clients answered."""

    def __init__(self, fairness: float = 0.0, most: float = math.inf) -> None:
        """`fairness` is the power of a client's loss in its share of a mean; losses above `most`
        count as `most`, so that none can take the mean for itself by what it says."""
        self.fairness, self.most = fairness, most
        self.deltas: dict[str, Tensors] = {}
        self.weights: dict[str, float] = {}
        self.scores: dict[str, Numbers] = {}
        self.losses: dict[str, float] = {}
        self.start: Tensors = {}
        """Where forget clients start, if that is the centre: where the retain clients alone would
        lead."""
        self.push: Tensors = {}
        """What momentum adds to the retain clients' step; empty without any."""
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
        loss, or one that is no number, counts as if it were the mean."""
        losses = {
            client: max(min(self.losses[client], self.most), NO_LOSS)
            for client in clients
            if math.isfinite(self.losses.get(client, math.nan))
        }
        mean = sum(losses.values()) / len(losses) if losses else 1.0
        return [
            self.weights[client] * (losses.get(client, mean) / mean) ** self.fairness
            for client in clients
        ]
