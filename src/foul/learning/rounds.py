"""The rounds of the learning stage: ask, average, step."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from foul.client.compress import Precision, decode, encode
from foul.config.schema import LearningConfig, ModelConfig
from foul.federation.average import WeightedMean
from foul.federation.federation import Federation, RoundLog
from foul.federation.ledger import Cost
from foul.federation.messages import ClientInfo, Tensors
from foul.learning.objectives import OBJECTIVES
from foul.models import part_of


@dataclass
class LearningState:
    """Where learning stands: enough to continue with the same bits."""

    tensors: Tensors
    velocity: Tensors = field(default_factory=dict)
    round: int = 0
    best: float = -1.0
    best_round: int = 0

    def numbers(self) -> dict[str, Any]:
        return {"round": self.round, "best": self.best, "best_round": self.best_round}

    def finished(self, config: LearningConfig) -> bool:
        """All rounds done, or no better validation accuracy for `patience` rounds."""
        stale = config.patience and self.round - self.best_round >= config.patience
        return self.round >= config.rounds or bool(stale)


def learning_rounds(
    federation: Federation,
    config: LearningConfig,
    state: LearningState,
    clients: Sequence[ClientInfo],
    buffers: frozenset[str],
    stage: str = "learning",
    keep: Callable[[str, Tensors], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run rounds until the stage is finished, changing `state`; yields a record per round."""
    while not state.finished(config):
        yield learning_round(federation, config, state, clients, buffers, stage, keep=keep)


def learning_round(
    federation: Federation,
    config: LearningConfig,
    state: LearningState,
    clients: Sequence[ClientInfo],
    buffers: frozenset[str],
    stage: str,
    model: ModelConfig | None = None,
    precision: Precision = "float32",
    keep: Callable[[str, Tensors], None] | None = None,
) -> dict[str, Any]:
    """One round of FedAvg on the objective's parts.

    `model` names another network than the clients' own; `keep` gets every client's delta.
    """
    start = time.perf_counter()
    number = state.round + 1
    parts = OBJECTIVES[config.objective].parts(config)
    sent = {name: t for name, t in state.tensors.items() if part_of(name) in parts}
    settings = {
        "learning": config.model_dump(mode="json"),
        "seed": federation.seed,
        "rate_scale": rate_scale(config, number),
    }
    if model is not None:
        settings["model"] = model.model_dump(mode="json")
    if precision != "float32":
        settings["precision"] = precision
    encoded = encode(sent, precision)
    mean, scores, log = WeightedMean(), Scores(), RoundLog()
    asked = federation.sample(clients, number)
    for reply in federation.ask(
        "learn", asked, encoded, settings, round=number, stage=stage, log=log, like=encoded
    ):
        tensors = reply.tensors if precision == "float32" else decode(reply.tensors)
        mean.add(tensors, reply.numbers["samples"])
        if keep is not None:
            keep(reply.client, {name: tensors[name] - sent[name] for name in sent})
        scores.add(reply.numbers)
    server_step(state, mean.result(), config, buffers)
    # One multiply-add per number and client for the sum, one more for the step.
    flops = 2 * sum(t.numel() for t in sent.values()) * (len(log.answered) + 1)
    federation.ledger.record(stage, Cost(flops_server=flops))
    accuracy = scores.validation_accuracy
    if accuracy is None:
        # Nobody has validation samples: nothing can be seen to be stale.
        state.best_round = number
    elif accuracy > state.best + config.min_delta:
        state.best, state.best_round = accuracy, number
    state.round = number
    return {
        "stage": stage,
        "round": number,
        # Of the model that this round started from.
        "validation_accuracy": accuracy,
        "losses": scores.losses(),
        "seconds": time.perf_counter() - start,
        "flops_server": flops,
        **log.to_dict(),
    }


def server_step(
    state: LearningState, mean: Tensors, config: LearningConfig, buffers: frozenset[str]
) -> None:
    r"""FedAvgM: :math:`v \leftarrow m v + (\bar\theta - \theta)`,
    :math:`\theta \leftarrow \theta + \eta_s v`; plain FedAvg for m = 0 and rate 1.

    Buffers are statistics, not weights: they become their mean.
    """
    plain = config.server_rate == 1 and config.server_momentum == 0
    for name, average in mean.items():
        if plain or name in buffers:
            state.tensors[name] = average
            continue
        velocity = average - state.tensors[name]
        if config.server_momentum and name in state.velocity:
            velocity.add_(state.velocity[name], alpha=config.server_momentum)
        if config.server_momentum:
            state.velocity[name] = velocity
        state.tensors[name] = torch.add(state.tensors[name], velocity, alpha=config.server_rate)


def rate_scale(config: LearningConfig, round: int) -> float:
    """What the local rates are multiplied with in this round (from 1)."""
    if config.schedule == "constant":
        return 1.0
    # Half a cosine that ends at 2 % instead of 0: the last rounds still move.
    progress = (round - 1) / max(1, config.rounds - 1)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))


class Scores:
    """Means over clients of what they reported."""

    def __init__(self) -> None:
        self._correct = self._validated = 0
        self._samples = 0
        self._losses: dict[str, float] = {}

    def add(self, numbers: dict[str, Any]) -> None:
        self._correct += numbers["validation"]["correct"]
        self._validated += numbers["validation"]["samples"]
        self._samples += numbers["samples"]
        for name, value in numbers["losses"].items():
            self._losses[name] = self._losses.get(name, 0.0) + value * numbers["samples"]

    @property
    def validation_accuracy(self) -> float | None:
        """Share of validation samples that the received model got right; None without any."""
        return self._correct / self._validated if self._validated else None

    def losses(self) -> dict[str, float]:
        return {name: value / self._samples for name, value in self._losses.items()}
