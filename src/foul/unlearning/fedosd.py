"""FedOSD: federated unlearning with gradient descent and conflict mitigation (Pan et al., AAAI
2025)."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from foul.federation.average import WeightedMean
from foul.federation.federation import RoundLog
from foul.federation.ledger import Cost
from foul.federation.messages import ClientInfo, Tensors
from foul.matching import gram_flops, gram_matrix, weighted_sum
from foul.matching.orthogonal import orthogonal_weights, recovery_weights
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import TrainingOptions, ask_to_train, moved, round_record


class FedOsdOptions(TrainingOptions):
    """How FedOSD unlearns."""

    rate: float = Field(default=0.03, gt=0)
    """Local learning rate while unlearning."""
    unlearning_rounds: int = Field(default=5, ge=0)
    """Rounds in which the forget clients descend the unlearning loss."""
    recovery_rounds: int = Field(default=5, ge=0)
    """Rounds of post-training over the retain clients."""
    recovery_rate: float = Field(default=0.02, gt=0)
    """Local rate of post-training."""
    step: float = Field(default=1.0, gt=0)
    """Server step, as a share of what the clients' own steps would be."""
    always: bool = False
    """Post-training always takes out the part along the way from the learned model (the authors'
    code), not only where it leads back (their paper)."""

    @property
    def rounds(self) -> int:
        return self.unlearning_rounds + self.recovery_rounds

    @model_validator(mode="after")
    def _does_something(self) -> "FedOsdOptions":
        if self.rounds == 0:
            raise ValueError(
                "unlearning_rounds and recovery_rounds are both 0; nothing would be done"
            )
        return self


class FedOsd(Method[FedOsdOptions]):
    r"""Descend a bounded unlearning loss on the forget clients, along the part of their update that
    is orthogonal to every retain client's update; then recover without returning.

    Unlearning: :math:`d = c \|g_u\| / \|c\|` with :math:`c = g_u - G^T (G G^T)^+ G g_u`, where g_u
    is the mean update of the forget clients (they descend :math:`-\log(1 - p_y / 2)`) and the rows
    of G are those of the retain clients. Post-training: where a retain client's step would lead
    back to the learned model, that part is taken out of it; then their plain mean is applied.

    Differences: updates are not divided by the rate (the authors divide and multiply again, which
    loses digits), local and server rates are apart, normalisation statistics are the retain
    clients' mean. The authors' code keeps the unlearning rate for one post-training round by
    mistake; we do not.
    """

    name: ClassVar[str] = "fedosd"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(forget_online=True, individual_updates=True)

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        began, number, log = time.perf_counter(), state.round + 1, RoundLog()
        unlearning = number <= self.options.unlearning_rounds
        changes = self._changes(case, state, case.request.retain, number, log, unlearning)
        statistics = mean_of([part(c, case.buffers) for c in changes])
        rows = [part(c, case.parameters) for c in changes]
        if unlearning:
            own = RoundLog()
            asked = case.request.forget
            forget = self._changes(case, state, asked, number, own, True, "bounded")
            log.absorb(own)
            rows += [part(c, case.parameters) for c in forget]
            mask = np.arange(len(rows)) >= len(changes)
            weights = orthogonal_weights(gram_matrix(rows).values, mask)
        else:
            rows.append({n: state.tensors[n] - case.learned[n] for n in rows[0]})
            weights = recovery_weights(gram_matrix(rows).values, self.options.always)
        step = weighted_sum(self.options.step * weights, rows)
        # The sum is counted where clients were asked.
        case.federation.ledger.record(self.name, Cost(flops_server=gram_flops(rows, sums=0)))
        state.tensors = moved(state.tensors, step | statistics)
        state.round = number
        if number >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return round_record(began, log)

    def _changes(
        self,
        case: Case,
        state: MethodState,
        clients: tuple[ClientInfo, ...],
        number: int,
        log: RoundLog,
        unlearning: bool,
        loss: str = "cross_entropy",
    ) -> list[Tensors]:
        rate = self.options.rate if unlearning else self.options.recovery_rate
        replies = ask_to_train(
            case, clients, state.tensors, self.options, number, self.name, log, loss=loss, rate=rate
        )
        return [reply.tensors for reply in replies]


def part(tensors: Tensors, names: frozenset[str]) -> Tensors:
    """The tensors of these names, always in the same order."""
    return {name: tensors[name] for name in sorted(names & tensors.keys())}


def mean_of(rows: Sequence[Tensors]) -> Tensors:
    """The plain mean of equal sets of tensors, in their own types."""
    mean = WeightedMean()
    for row in rows:
        mean.add(row, 1.0)
    return mean.result()
