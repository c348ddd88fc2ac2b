"""FOUL: on-server gradient matching on the non-causal encoder."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from foul.client.compress import Precision, decode, encode
from foul.config.schema import LearningConfig, Section
from foul.federation.federation import RoundLog
from foul.federation.messages import ClientInfo, Numbers, Tensors
from foul.matching import MatchingOptions, gram_matrix, match, weighted_sum
from foul.models import DEPLOYED, part_of
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements

SPLITS = ("train", "validation")


class FoulOptions(Section):
    """How FOUL unlearns."""

    rounds: int = Field(default=10, ge=1)
    """Largest number of forgetting rounds."""
    recovery: int = Field(default=2, ge=0)
    """Rounds on retain clients alone after forgetting, which may not walk back."""
    scope: tuple[str, ...] = ("V", "head")
    """The parts that travel and change."""
    matching: bool = True
    """Stage (1)+(2); off: stage (1), FedAvg of the scope over retain clients."""
    forget: Literal["bounded", "negated"] = "bounded"
    """What forget clients send: the delta of a bounded unlearning loss, or of cross-entropy (the
    paper), which then counts with a minus."""
    anchor: Literal["retain", "all"] = "retain"
    """Whose mean the update stays close to; `all` is the paper's."""
    normalise: Literal["none", "retain_mean"] = "retain_mean"
    """Bring all deltas to the retain clients' mean norm."""
    simplex: Literal["split", "joint"] = "split"
    radius: Literal["kappa", "sqrt_kappa"] = "kappa"
    radius_of: Literal["anchor", "mean_norm"] = "mean_norm"
    kappa: float = Field(default=1.0, ge=0)
    beta: float = Field(default=1.0, gt=0)
    rescale: bool = False
    server_rate: float = Field(default=1.0, gt=0)
    """Step eta_g along the update."""
    epochs: float = Field(default=2.0, gt=0)
    rate: float = Field(default=0.05, gt=0)
    batch_size: int = Field(default=32, ge=2)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    precision: Precision = "bfloat16"
    """How the scope and its deltas travel."""
    target: float | None = Field(default=None, ge=0, le=1)
    """Forgetting stops when forget clients' held-out accuracy is at most this."""
    delta: float = Field(default=0.03, ge=0)
    """Largest loss of retain validation accuracy; beyond it forgetting stops."""

    def matching_options(self) -> MatchingOptions:
        return MatchingOptions(
            kappa=self.kappa,
            simplex=self.simplex,
            radius=self.radius,
            radius_of=self.radius_of,
            beta=self.beta,
            forget=self.forget,
            anchor=self.anchor,
            normalise=self.normalise,
            rescale=self.rescale,
        )


class Foul(Method):
    """Only the scope changes; everything else is frozen and its outputs are computed once."""

    name: ClassVar[str] = "foul"
    requirements: ClassVar[Requirements] = Requirements(
        forget_online=True, individual_updates=True, l2u=True
    )

    def __init__(self, options: FoulOptions) -> None:
        super().__init__(options)
        self.options: FoulOptions = options

    def start(self, case: Case) -> MethodState:
        """Send the frozen parts once; clients keep their outputs."""
        frozen = {
            name: tensor
            for name, tensor in case.learned.items()
            if part_of(name) in DEPLOYED and part_of(name) not in self.options.scope
        }
        state = MethodState(dict(case.learned), numbers={"frozen": key_of(frozen)})
        settings = {"frozen": state.numbers["frozen"], "splits": list(SPLITS)}
        for _ in case.federation.ask(
            "freeze",
            case.federation.clients,
            frozen,
            settings,
            round=0,
            stage=self.name,
            log=RoundLog(),
        ):
            pass
        state.numbers["phase"] = "forget"
        return state

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        options, request = self.options, case.request
        state.round += 1
        log, scores = RoundLog(), {}
        deltas: dict[str, Tensors] = {}
        weights: dict[str, float] = {}
        groups: list[tuple[Sequence[ClientInfo], str]] = [(request.retain, "cross_entropy")]
        forgetting = options.matching and state.numbers["phase"] == "forget"
        if forgetting:
            loss = "bounded" if options.forget == "bounded" else "cross_entropy"
            groups.append((request.forget, loss))
        sent = encode(self._scope(case, state), options.precision)
        for clients, loss in groups:
            settings = self._settings(case, state, loss)
            for reply in case.federation.ask(
                "unlearn", clients, sent, settings, round=state.round, stage=self.name, log=log
            ):
                deltas[reply.client] = decode(reply.tensors)
                weights[reply.client] = reply.numbers["samples"]
                scores[reply.client] = reply.numbers["scores"]
        evidence = Evidence(scores, request.forget_ids)
        record = {"phase": state.numbers["phase"], **evidence.to_dict(), **log.to_dict()}
        reason = self._stop(state, evidence) if forgetting else ""
        if reason:
            state.numbers["phase"] = "recover"
            state.numbers["stopped"] = reason
            state.numbers["recovered"] = 0
            update = self._mean(case, state, deltas, weights)
        elif forgetting:
            update, matched = self._match(case, deltas, weights)
            record["matching"] = matched
        else:
            update = self._mean(case, state, deltas, weights)
            state.numbers["recovered"] = state.numbers.get("recovered", 0) + 1
        for name, value in update.items():
            state.tensors[name] = state.tensors[name] + options.server_rate * value
        self._finish(state)
        return record

    def _finish(self, state: MethodState) -> None:
        if state.numbers["phase"] == "forget" and state.round >= self.options.rounds:
            state.numbers["phase"] = "recover"
            state.numbers.setdefault("stopped", f"the limit of {self.options.rounds} rounds")
            state.numbers["recovered"] = 0
        if (
            state.numbers["phase"] == "recover"
            and state.numbers["recovered"] >= self.options.recovery
        ):
            state.finished = state.numbers["stopped"]

    def _stop(self, state: MethodState, evidence: "Evidence") -> str:
        if state.round == 1:
            state.numbers["retain_before"] = evidence.accuracy("retain", "validation")
            return ""
        options = self.options
        forget = evidence.accuracy("forget", "validation")
        if options.target is not None and forget <= options.target:
            return f"held-out forget accuracy {forget:.3f} reached the target {options.target:.3f}"
        lost = state.numbers["retain_before"] - evidence.accuracy("retain", "validation")
        if lost > options.delta:
            return f"retain accuracy fell by {lost:.3f}, more than {options.delta:.3f}"
        return ""

    def _scope(self, case: Case, state: MethodState) -> Tensors:
        return {
            name: tensor
            for name, tensor in state.tensors.items()
            if part_of(name) in self.options.scope and name not in case.buffers
        }

    def _settings(self, case: Case, state: MethodState, loss: str) -> Numbers:
        options = self.options
        learning = LearningConfig(
            batch_size=options.batch_size, momentum=options.momentum, weight_decay=0.0
        )
        return {
            "frozen": state.numbers["frozen"],
            "splits": list(SPLITS),
            "scope": list(options.scope),
            "loss": loss,
            "epochs": options.epochs,
            "rate": options.rate,
            "precision": options.precision,
            "learning": learning.model_dump(mode="json"),
            "seed": case.federation.seed,
        }

    def _match(
        self, case: Case, deltas: dict[str, Tensors], weights: dict[str, float]
    ) -> tuple[Tensors, dict[str, Any]]:
        clients = sorted(deltas)
        rows = [deltas[client] for client in clients]
        gram = gram_matrix(rows)
        mask = np.array([client in case.request.forget_ids for client in clients])
        matching = match(
            gram.values, mask, self.options.matching_options(), [weights[c] for c in clients]
        )
        told = {
            "gap": matching.relative_gap,
            "flag": matching.flag,
            "weights": dict(zip(clients, matching.weights.tolist(), strict=True)),
            "cosines": dict(zip(clients, matching.cosines.tolist(), strict=True)),
        }
        return weighted_sum(matching.weights, rows), told

    def _mean(
        self, case: Case, state: MethodState, deltas: dict[str, Tensors], weights: dict[str, float]
    ) -> Tensors:
        """The retain clients' mean, without what would lead back to the learned model."""
        retain = [client for client in sorted(deltas) if client not in case.request.forget_ids]
        total = sum(weights[client] for client in retain)
        shares = np.array([weights[client] / total for client in retain])
        update = weighted_sum(shares, [deltas[client] for client in retain])
        back = {name: case.learned[name] - state.tensors[name] for name in update}
        along, length = inner(update, back), inner(back, back)
        if self.options.matching and along > 0 and length > 0:
            update = {name: u - (along / length) * back[name] for name, u in update.items()}
        return update


class Evidence:
    """How well the model that a round started from does, over retain and over forget clients."""

    def __init__(self, scores: dict[str, Numbers], forget: frozenset[str]) -> None:
        self._scores = scores
        self._forget = forget

    def accuracy(self, role: str, split: str) -> float:
        chosen = [
            splits[split]
            for client, splits in self._scores.items()
            if (client in self._forget) == (role == "forget")
        ]
        samples = sum(score["samples"] for score in chosen)
        return sum(score["correct"] for score in chosen) / max(1, samples)

    def to_dict(self) -> dict[str, float]:
        return {
            f"{role}_{split}": self.accuracy(role, split)
            for role in ("retain", "forget")
            for split in SPLITS
        }


def key_of(tensors: Tensors) -> str:
    """A hash of names and values."""
    digest = blake2b(digest_size=12)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def inner(one: Tensors, other: Tensors) -> float:
    """Inner product of two sets of tensors."""
    return sum(
        float(torch.dot(one[n].flatten().double(), other[n].flatten().double())) for n in one
    )


__all__ = ["Foul", "FoulOptions", "Tensor"]
