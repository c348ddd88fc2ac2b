"""The interface of an unlearning method: server-side code that asks clients for named tasks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from foul.config.schema import Config, Section
from foul.federation.federation import Federation
from foul.federation.messages import Tensors
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import Requirements


@dataclass(frozen=True)
class LearnedScores:
    """How the learned model does on each client's data, as far as they told."""

    losses: Mapping[str, float] = field(default_factory=dict)
    """Mean loss on the training samples."""
    gaps: Mapping[str, float] = field(default_factory=dict)
    """Accuracy on the training samples above that on the held-out ones."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Accuracy on the held-out samples."""


@dataclass(frozen=True)
class Case:
    """One request for one learned model. A method sees this, and no data."""

    federation: Federation
    config: Config
    request: ForgetRequest
    learned: Tensors
    learned_rounds: int
    initial: Tensors
    buffers: frozenset[str]
    classes: int
    image_size: int
    deltas: Mapping[str, Tensors] = field(default_factory=dict)
    """Last updates of the learning stage, of those clients of whom the run kept one."""
    history: tuple[Mapping[str, Tensors], float] | None = None
    """S_g per group and Z of `learning/history.py`, if the run kept them."""
    scores: LearnedScores = field(default_factory=LearnedScores)
    own: "MethodState | None" = None
    """How the method's own learning stage ended, if it has one."""

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the network's tensors that are trained."""
        return frozenset(self.learned) - self.buffers


@dataclass
class MethodState:
    """Where a method stands: enough to continue with the same bits."""

    tensors: Tensors
    """The model as it would be deployed now."""
    extra: Tensors = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    round: int = 0
    finished: str = ""
    """Why the method stopped; empty while it goes on."""


Options = TypeVar("Options", bound=Section)


class Method(ABC, Generic[Options]):
    """One unlearning method. Its docstring says the idea; `requirements` says what it needs."""

    name: ClassVar[str]
    requirements: ClassVar[Requirements] = Requirements()
    version: ClassVar[int] = 1
    """Raised when the same options give another model: stored results then are not taken for
    new ones."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @property
    def needs(self) -> Requirements:
        """What it needs with these options."""
        return self.requirements

    def learning(self) -> "Method[Any] | None":
        """A learning stage of its own, if the method needs one: rounds over all clients, whose end
        is the learned model. It is run once for all requests, and must not look at the request."""
        return None

    def planned(self, case: Case, state: MethodState) -> int:
        """How many rounds it will take, as far as is known by now."""
        return getattr(self.options, "rounds", 0) or case.learned_rounds

    @abstractmethod
    def start(self, case: Case) -> MethodState:
        """The state before the first round."""

    @abstractmethod
    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        """Run one round, changing `state`; answers the round's record."""
