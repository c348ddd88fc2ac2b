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

    def __init__(self, options: Options) -> None:
        self.options = options

    @property
    def needs(self) -> Requirements:
        """What it needs with these options."""
        return self.requirements

    @abstractmethod
    def start(self, case: Case) -> MethodState:
        """The state before the first round."""

    @abstractmethod
    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        """Run one round, changing `state`; answers the round's record."""
