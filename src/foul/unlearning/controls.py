"""The methods every other one is compared with: do nothing, start again, simply go on."""

from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import LearningConfig, Section
from foul.learning.rounds import LearningState, learning_round
from foul.unlearning.method import Case, Method, MethodState


class NoneOptions(Section):
    """Nothing to choose."""


class DoNothing(Method[NoneOptions]):
    """The learned model as it is: what an erasure without unlearning would be."""

    name: ClassVar[str] = "none"

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned), finished="nothing to do")

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        raise AssertionError("a finished method has no steps")


class RetrainOptions(Section):
    """How long retraining goes on."""

    rounds: int = Field(default=0, ge=0)
    """Rounds; 0: as many as learning took."""


class Retrain(Method[RetrainOptions]):
    """The same network and recipe from scratch, over the retain clients alone: the sure answer.

    It asks no forget client for anything, so it is blind to their data bit for bit.
    """

    name: ClassVar[str] = "retrain"

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.initial))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        rounds = self.options.rounds or case.learned_rounds
        config = case.config.learning.model_copy(update={"rounds": rounds, "patience": 0})
        record = fedavg_round(case, state, config, self.name)
        if state.round >= rounds:
            state.finished = f"all {rounds} rounds done"
        return record


class ContinueOptions(Section):
    """How long to go on, and how fast."""

    rounds: int = Field(default=5, ge=1)
    """Rounds."""
    rate: float = Field(default=0.2, gt=0)
    """Local rates as a share of those of the learning stage."""


class Continue(Method[ContinueOptions]):
    """Go on learning over the retain clients alone, without a reset."""

    name: ClassVar[str] = "continue"

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        learning, rate = case.config.learning, self.options.rate
        l2u = learning.l2u.model_copy(
            update={
                "generator_rate": learning.l2u.generator_rate * rate,
                "mid_rate": learning.l2u.mid_rate * rate,
            }
        )
        supervised = learning.supervised.model_copy(
            update={"rate": learning.supervised.rate * rate}
        )
        config = learning.model_copy(
            update={
                "rounds": self.options.rounds,
                "schedule": "constant",
                "l2u": l2u,
                "supervised": supervised,
            }
        )
        record = fedavg_round(case, state, config, self.name)
        if state.round >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return record


def fedavg_round(
    case: Case, state: MethodState, config: LearningConfig, stage: str
) -> dict[str, Any]:
    """One round of the learning stage over the retain clients."""
    learning = LearningState(state.tensors, state.extra, state.round)
    record = learning_round(
        case.federation, config, learning, case.request.retain, case.buffers, stage
    )
    state.round = learning.round
    return record
