from typing import get_args

import pytest
import torch
from factories import MakeNet, learning

from foul.config.schema import LearningConfig
from foul.learning.objectives import OBJECTIVES
from foul.models.disentangled import PARTS


def test_every_configurable_objective_exists() -> None:
    assert set(OBJECTIVES) == set(get_args(LearningConfig.model_fields["objective"].annotation))


@pytest.mark.parametrize("name", list(OBJECTIVES))
@pytest.mark.parametrize("l2u", [{}, {"alpha_adv": 0.1}])
def test_exactly_the_trained_parts_travel(
    make_net: MakeNet, name: str, l2u: dict[str, float]
) -> None:
    config = learning(objective=name, l2u=l2u)
    net = make_net(adversarial=True)
    phases = OBJECTIVES[name].phases(net, config, lambda purpose, device: torch.Generator())
    travelling = OBJECTIVES[name].parts(config)
    assert set(travelling) == {part for phase in phases for part in phase.parts}
    assert set(travelling) <= set(PARTS)
    assert len({phase.name for phase in phases}) == len(phases)
