"""The methods every other one is compared with: do nothing, start again, simply go on."""

from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import LearningConfig, Section
from foul.federation.build import initial_network
from foul.learning.going_on import RATE, going_on
from foul.learning.rounds import LearningState, learning_round
from foul.learning.shortened import shortened
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
    again: int = Field(default=0, ge=0)
    """Another start and another order of batches: retrained twice, honest models differ too."""


class Retrain(Method[RetrainOptions]):
    """The same network and recipe from scratch, over the retain clients alone: the sure answer.

    It asks no forget client for anything, so it is blind to their data bit for bit.
    """

    name: ClassVar[str] = "retrain"
    version: ClassVar[int] = 2

    def start(self, case: Case) -> MethodState:
        if not self.options.again:
            return MethodState(dict(case.initial))
        config = case.config.model_copy(update={"seed": case.federation.seed + self._shift})
        net = initial_network(config, case.classes, case.image_size)
        return MethodState({name: t.clone() for name, t in net.state_dict().items()})

    @property
    def _shift(self) -> int:
        """Far from the seeds that people count up."""
        return 1_000_003 * self.options.again

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        if self.options.again:
            federation = case.federation.reseeded(case.federation.seed + self._shift)
            case = replace(case, federation=federation)
        rounds = self.options.rounds or case.learned_rounds
        config = shortened(case.config.learning, rounds, case.learned_rounds)
        record = fedavg_round(case, state, config, self.name)
        if state.round >= rounds:
            state.finished = f"all {rounds} rounds done"
        return record


class ContinueOptions(Section):
    """How long to go on, and how fast."""

    rounds: int = Field(default=5, ge=1)
    """Rounds."""
    rate: float = Field(default=RATE, gt=0)
    """Local rates as a share of those of the learning stage."""


class Continue(Method[ContinueOptions]):
    """Go on learning over the retain clients alone, without a reset."""

    name: ClassVar[str] = "continue"
    version: ClassVar[int] = 2

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        options = self.options
        config = going_on(case.config.learning, options.rounds, options.rate)
        record = fedavg_round(case, state, config, self.name)
        if state.round >= options.rounds:
            state.finished = f"all {options.rounds} rounds done"
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
