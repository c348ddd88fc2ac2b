"""Rounds of local training that published methods share: the whole network, cross-entropy."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from foul.config.schema import LearningConfig, Section
from foul.federation.average import WeightedMean
from foul.federation.federation import RoundLog
from foul.federation.ledger import Cost
from foul.federation.messages import ClientInfo, Numbers, Reply, Tensors, join_groups
from foul.learning.going_on import staying_fixed
from foul.models import DEPLOYED, deployed_state
from foul.unlearning.method import Case


class TrainingOptions(Section):
    """How clients train locally."""

    epochs: float = Field(default=1.0, gt=0)
    """Local epochs per round."""
    rate: float = Field(default=0.02, gt=0)
    """Local learning rate."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of the local SGD, fresh in every round."""


def ask_to_train(
    case: Case,
    clients: Sequence[ClientInfo],
    tensors: Tensors,
    options: TrainingOptions,
    number: int,
    stage: str,
    log: RoundLog,
    *,
    loss: str = "cross_entropy",
    rate: float | None = None,
    anew: bool = False,
    teacher: Tensors | None = None,
    mask: Tensors | None = None,
    **settings: Any,
) -> Iterator[Reply]:
    """How each client would change the deployed network by local training.

    Args:
        anew: the network learns from scratch: batch statistics are fixed when the learning stage
            would; else they stay as it left them.
        teacher: a network whose answers are the labels.
        mask: 0 where weights must not change.
        settings: further settings of the task `train`.
    """
    model = deployed_state(tensors)
    groups = {"model": model}
    if teacher is not None:
        groups["teacher"] = deployed_state(teacher)
    if mask is not None:
        groups["mask"] = mask
    told: Numbers = {
        "loss": loss,
        "parts": list(DEPLOYED),
        "epochs": options.epochs,
        "rate": options.rate if rate is None else rate,
        "learning": local_recipe(case, options.batch_size, options.momentum, anew),
        "seed": case.federation.seed,
        **settings,
    }
    yield from case.federation.ask(
        "train",
        clients,
        join_groups(groups),
        told,
        round=number,
        stage=stage,
        log=log,
        like=model,
    )
    record_mean(case, stage, model, log)


def record_mean(case: Case, stage: str, tensors: Tensors, log: RoundLog) -> None:
    """What the server spends on the mean of what clients answered: one multiply-add per number and
    client for the sum, one more for the step."""
    flops = 2 * sum(tensor.numel() for tensor in tensors.values()) * (len(log.answered) + 1)
    case.federation.ledger.record(stage, Cost(flops_server=flops))


def local_recipe(case: Case, batch_size: int, momentum: float, anew: bool = False) -> Numbers:
    """What a client must know of how to descend. Batch statistics that learning fixed stay fixed;
    those of a network that learns `anew` are fixed when the learning stage would."""
    recipe = case.config.learning
    local = LearningConfig(
        batch_size=batch_size,
        momentum=momentum,
        weight_decay=0.0,
        fix_statistics_after=recipe.fix_statistics_after if anew else staying_fixed(recipe),
    )
    return local.model_dump(
        mode="json", include={"batch_size", "momentum", "weight_decay", "fix_statistics_after"}
    )


def round_record(began: float, log: RoundLog) -> dict[str, Any]:
    """What to note of a round that began at this time; nobody was asked for validation scores."""
    return {
        "validation_accuracy": None,
        "losses": {},
        "seconds": time.perf_counter() - began,
        **log.to_dict(),
    }


def mean_change(replies: Iterator[Reply]) -> Tensors:
    """The clients' changes, weighted by their samples, folded in one at a time."""
    mean = WeightedMean()
    for reply in replies:
        mean.add(reply.tensors, reply.numbers["samples"])
    return mean.result()


def moved(tensors: Tensors, change: Tensors, rate: float = 1.0) -> Tensors:
    """The network after a step; what the change does not name stays."""
    return tensors | {
        name: (tensors[name] + rate * step).to(tensors[name].dtype) for name, step in change.items()
    }
