"""Types of the shared fixtures, and requests for the tiny clients."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.config.schema import LearningConfig
from foul.federation.messages import Request, Tensors
from foul.models import DisentangledNet, part_of

MakeNet = Callable[..., DisentangledNet]
MakeWorker = Callable[..., Worker]

NO_FEATURES = FeatureStore(Path("/nowhere"))
"""For tasks that keep no outputs of frozen parts."""


def learning(**values: object) -> LearningConfig:
    """Learning in batches of 8; keywords change it, `l2u={...}` the L2U part."""
    return LearningConfig.model_validate({"batch_size": 8, **values})


def learn_request(
    client: str,
    tensors: Tensors,
    config: LearningConfig | None = None,
    *,
    round: int = 1,
    **settings: object,
) -> Request:
    """What the server asks a client in a round of the learning stage."""
    learn = (config or learning()).model_dump(mode="json")
    return Request(client, "learn", round, tensors, {"learning": learn, "seed": 0, **settings})


def snapshot(net: nn.Module) -> Tensors:
    """Copies of all tensors of a network, as a server holds them."""
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def changed_parts(before: Tensors, after: Mapping[str, Any]) -> set[str]:
    """The parts of which at least one tensor has other bits now."""
    return {part_of(name) for name, tensor in after.items() if not tensor.equal(before[name])}


def same_bits(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)
