"""What clients minimise in the learning stage, as a list of phases."""

from collections.abc import Callable
from typing import Protocol

import torch

from foul.config.schema import LearningConfig
from foul.learning.l2u import L2U
from foul.learning.local import Phase
from foul.learning.supervised import Supervised
from foul.models import DisentangledNet


class Objective(Protocol):
    """One way to learn."""

    def parts(self, config: LearningConfig) -> tuple[str, ...]:
        """The parts that are trained, and so travel."""

    def phases(
        self,
        net: DisentangledNet,
        config: LearningConfig,
        generator: Callable[[str, bool], torch.Generator],
    ) -> list[Phase]:
        """The phases of one local training, in order."""


OBJECTIVES: dict[str, Objective] = {"l2u": L2U(), "supervised": Supervised()}
