"""MoDe: federated unlearning by momentum degradation (Zhao et al., 2023), as far as it is known."""

import time
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator

from foul.federation.average import WeightedMean
from foul.federation.federation import RoundLog
from foul.federation.ledger import Cost
from foul.federation.messages import Tensors, join_groups, take_group
from foul.learning.rounds import LearningState, learning_round
from foul.learning.shortened import shortened
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import TrainingOptions, ask_to_train, moved, round_record


class ModeOptions(TrainingOptions):
    """How MoDe unlearns."""

    rate: float = Field(default=0.05, gt=0)
    """Local learning rate of guidance."""
    keep: float = Field(default=0.8, ge=0, le=1)
    """Weight of the model in each blend with the degradation model (ports write lambda, on either
    side of the formula)."""
    degradation_rounds: int = Field(default=5, ge=0)
    """Rounds in which the degradation model learns and the model is blended with it."""
    guidance_rounds: int = Field(default=3, ge=0)
    """Further rounds of guidance alone."""

    @property
    def rounds(self) -> int:
        return self.degradation_rounds + self.guidance_rounds

    @model_validator(mode="after")
    def _does_something(self) -> "ModeOptions":
        if self.rounds == 0:
            raise ValueError(
                "degradation_rounds and guidance_rounds are both 0; nothing would be done"
            )
        return self


class MoDe(Method[ModeOptions]):
    r"""Pull the model towards a fresh one that learns beside it from the retain clients, whose
    answers are the labels of the forget clients' data.

    Each of the first rounds: retain clients train the degradation model M_de, then
    :math:`M \leftarrow \lambda M + (1 - \lambda) M_{de}`. Each round, guidance: retain clients
    train M on their labels, forget clients on the answers of M_de, and the changes are averaged.

    Reconstructed from two third-party ports, which agree on these steps and disagree on the side
    and size of lambda; there is no official code, and its values are ours. M_de starts from the
    weights that learning started from.
    """

    name: ClassVar[str] = "mode"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(forget_online=True)

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned), join_groups({"de": dict(case.initial)}))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        began, number, log = time.perf_counter(), state.round + 1, RoundLog()
        # A log holds one cost per client: what they spend on the other model is added at the end.
        own, degrading = RoundLog(), RoundLog()
        tensors, extra = state.tensors, state.extra
        if number <= self.options.degradation_rounds:
            extra = self._degrade(case, extra, number, degrading)
            tensors = blended(tensors, take_group(extra, "de"), self.options.keep, case.buffers)
        mean = WeightedMean()
        for reply in ask_to_train(
            case, case.request.retain, tensors, self.options, number, self.name, log
        ):
            mean.add(reply.tensors, reply.numbers["samples"])
        for reply in ask_to_train(
            case,
            case.request.forget,
            tensors,
            self.options,
            number,
            self.name,
            own,
            teacher=take_group(extra, "de"),
        ):
            mean.add(reply.tensors, reply.numbers["samples"])
        log.absorb(own)
        log.spent(degrading.costs)
        # Nothing is changed before all of it went well.
        state.tensors, state.extra, state.round = moved(tensors, mean.result()), extra, number
        if number >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return round_record(began, log)

    def _degrade(self, case: Case, extra: Tensors, number: int, log: RoundLog) -> Tensors:
        """One learning round of the degradation model over the retain clients."""
        learning = LearningState(take_group(extra, "de"), take_group(extra, "velocity"), number - 1)
        recipe = case.config.learning.model_copy(update={"schedule": "constant"})
        config = shortened(recipe, self.options.rounds, case.learned_rounds)
        record = learning_round(
            case.federation, config, learning, case.request.retain, case.buffers, self.name
        )
        log.spent({client: Cost(**cost) for client, cost in record["costs"].items()})
        return join_groups({"de": learning.tensors, "velocity": learning.velocity})


def blended(tensors: Tensors, other: Tensors, keep: float, buffers: frozenset[str]) -> Tensors:
    """keep * tensors + (1 - keep) * other. Statistics of a blend mean nothing: they stay, and the
    guidance that follows renews them, unless learning has fixed them."""
    return {
        name: tensor if name in buffers else torch.lerp(other[name], tensor, keep)
        for name, tensor in tensors.items()
    }
