r"""What FedRecovery needs of the learning stage, streamed: no update is kept.

Round t's mean update is :math:`\Delta_t = \sum_k a_k U_t^k`, and without the clients of a group g,
with :math:`\alpha_g = \sum_{k \in g} a_k`, it would have been smaller or larger by

.. math:: \delta_{t,g} = \Delta_t - \frac{\sum_{k \notin g} a_k U_t^k}{1 - \alpha_g}
          = \frac{\sum_{k \in g} a_k U_t^k - \alpha_g \Delta_t}{1 - \alpha_g} .

Kept are, per group, :math:`S_g = \sum_t \|\Delta_t\|^2 \delta_{t,g}`, and once
:math:`Z = \sum_t \|\Delta_t\|^2`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from foul.federation.messages import ClientInfo, Tensors, join_groups, take_group
from foul.models import deployed_state


class History:
    """Accumulators of the residuals of some groups of clients."""

    def __init__(
        self,
        groups: Mapping[str, Sequence[str]],
        samples: Mapping[str, int],
        buffers: frozenset[str],
    ) -> None:
        self._groups = {group: frozenset(clients) for group, clients in groups.items()}
        self._samples, self._buffers = samples, buffers
        self.residuals: dict[str, Tensors] = {group: {} for group in groups}
        self.weight = 0.0
        self.rounds = 0
        self._sums: dict[str, Tensors] = {}
        self._counts: dict[str, float] = {}

    @classmethod
    def of(cls, kind: str, clients: Sequence[ClientInfo], buffers: frozenset[str]) -> "History":
        """A group for each domain, or for each client; named like requests."""
        groups: dict[str, list[str]] = {}
        for client in clients:
            name = client.domain if kind == "domains" else client.id
            groups.setdefault(f"{kind.removesuffix('s')}:{name}", []).append(client.id)
        return cls(groups, {c.id: c.samples["train"] for c in clients}, buffers)

    def add(self, client: str, delta: Tensors) -> None:
        """A client's update of this round."""
        weight = float(self._samples[client])
        update = {n: t for n, t in deployed_state(delta).items() if n not in self._buffers}
        self._accumulate("", update, weight)
        for group, members in self._groups.items():
            if client in members:
                self._accumulate(group, update, weight)

    def _accumulate(self, group: str, update: Tensors, weight: float) -> None:
        sums = self._sums.setdefault(group, {})
        for name, tensor in update.items():
            if name in sums:
                sums[name].add_(tensor, alpha=weight)
            else:
                sums[name] = tensor * weight
        self._counts[group] = self._counts.get(group, 0.0) + weight

    def end_round(self) -> None:
        """Fold this round's residuals in. A group that did not take part changed nothing; for one
        that was alone, nobody knows what would have been: it is left out."""
        total = self._counts.get("", 0.0)
        if total:
            mean = {name: tensor / total for name, tensor in self._sums[""].items()}
            squared = sum(float(t.double().square().sum()) for t in mean.values())
            self.weight += squared
            for group in self._groups:
                share = self._counts.get(group, 0.0) / total
                if 0 < share < 1:
                    self._fold(group, mean, share, squared)
        self.rounds += 1
        self._sums, self._counts = {}, {}

    def _fold(self, group: str, mean: Tensors, share: float, squared: float) -> None:
        total = self._counts[""]
        kept = self.residuals[group]
        for name, part in self._sums[group].items():
            residual = (part / total - share * mean[name]) * (squared / (1 - share))
            kept[name] = kept[name] + residual if name in kept else residual

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Tensors and numbers to continue from, between rounds."""
        groups = list(self.residuals)
        tensors = join_groups({str(n): self.residuals[g] for n, g in enumerate(groups)})
        return tensors, {"groups": groups, "weight": self.weight, "rounds": self.rounds}

    def restore(self, tensors: Tensors, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.residuals = residuals(tensors, numbers)
        self.weight, self.rounds = numbers["weight"], numbers["rounds"]


def residuals(tensors: Tensors, numbers: Mapping[str, Any]) -> dict[str, Tensors]:
    """S_g of each group in a saved state."""
    return {group: take_group(tensors, str(n)) for n, group in enumerate(numbers["groups"])}


def corrected(tensors: Tensors, residual: Tensors, weight: float, scale: float = 1.0) -> Tensors:
    r""":math:`\bar w = w_T - s S_g / Z`; s = 1 is the paper's, s = T the full sum of residuals."""
    if not weight:
        return dict(tensors)
    return tensors | {
        name: tensors[name] - (scale / weight) * torch.as_tensor(step)
        for name, step in residual.items()
    }
