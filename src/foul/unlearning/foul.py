"""FOUL: on-server gradient matching on the non-causal encoder."""

import math
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from foul.client.compress import Precision, decode, encode
from foul.config.schema import LearningConfig, Section
from foul.federation.federation import QuorumError, RoundLog
from foul.federation.messages import ClientInfo, Numbers, Tensors
from foul.matching import MatchingOptions, gram_matrix, match, weighted_sum
from foul.models import DEPLOYED, part_of
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import Requirements

SPLITS = ("train", "validation")


class FoulOptions(Section):
    """How FOUL unlearns."""

    rounds: int = Field(default=10, ge=1)
    """Largest number of forgetting rounds."""
    recovery: int = Field(default=0, ge=0)
    """Rounds on retain clients alone after forgetting, which may not walk back."""
    scope: tuple[Literal["V", "head"], ...] = Field(default=("V", "head"), min_length=1)
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
    """Retain and forget weights sum to 1 each (the proof), or together (the theorem)."""
    radius: Literal["kappa", "sqrt_kappa"] = "kappa"
    """The proof's radius, or the theorem's."""
    radius_of: Literal["anchor", "mean_norm"] = "mean_norm"
    """What kappa is a share of: the anchor's norm (the paper), or the deltas' mean norm."""
    kappa: float = Field(default=0.5, ge=0)
    """Radius of the ball around the anchor."""
    beta: float = Field(default=1.0, gt=0)
    """Weight of the forget clients in the matching."""
    rescale: bool = False
    """Divide the update by 1 + kappa^2, as the authors do."""
    server_rate: float = Field(default=1.0, gt=0)
    """Step eta_g along the update."""
    epochs: float = Field(default=2.0, gt=0)
    """Local epochs on the cached outputs of the frozen parts."""
    rate: float = Field(default=0.02, gt=0)
    """Local learning rate."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of the local SGD."""
    precision: Precision = "bfloat16"
    """How the scope and its deltas travel."""
    peers: bool = True
    """Where retain clients share the forget clients' domains, forgetting stops when the forget
    clients' training data is answered no better than these peers' held-out data, as by a model
    that never saw it. Where a whole domain is forgotten there are no peers, and rounds decide."""
    target: float | None = Field(default=None, ge=0, le=1)
    """Forgetting stops when forget clients' held-out accuracy is at most this."""
    delta: float = Field(default=0.03, ge=0)
    """Largest loss of retain validation accuracy; a step beyond it is taken back, and forgetting
    stops."""

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


def paper_options(as_printed: bool = False) -> FoulOptions:
    """The paper's form: V alone, all clients' mean as anchor, negated deltas, no normalisation,
    kappa 0.5, eta_g 0.2. `as_printed` takes the theorem literally: one simplex, sqrt(kappa)."""
    return FoulOptions(
        scope=("V",),
        recovery=0,
        forget="negated",
        anchor="all",
        normalise="none",
        radius_of="anchor",
        kappa=0.5,
        server_rate=0.2,
        precision="float32",
        delta=1.0,
        simplex="joint" if as_printed else "split",
        radius="sqrt_kappa" if as_printed else "kappa",
    )


class Foul(Method[FoulOptions]):
    """Only the scope changes; everything else is frozen and its outputs are computed once."""

    name: ClassVar[str] = "foul"
    requirements: ClassVar[Requirements] = Requirements(
        forget_online=True, individual_updates=True, l2u=True
    )

    def start(self, case: Case) -> MethodState:
        """Send the frozen parts once; clients keep their outputs."""
        state = MethodState(dict(case.learned))
        frozen = key_of(self._frozen(case, state))
        state.numbers = {"phase": "forget", "frozen": frozen, "ready": []}
        self._freeze(case, state)
        return state

    def _freeze(self, case: Case, state: MethodState) -> None:
        """Send the frozen parts to those who have not got them: all, or who was away before."""
        ready = state.numbers["ready"]
        missing = [client for client in case.federation.clients if client.id not in ready]
        if not missing:
            return
        try:
            for reply in case.federation.ask(
                "freeze",
                missing,
                self._frozen(case, state),
                {"frozen": state.numbers["frozen"], "splits": list(SPLITS)},
                round=state.round,
                stage=self.name,
                log=RoundLog(),
            ):
                ready.append(reply.client)
        except QuorumError:
            # Later it is the round itself that counts who is there.
            if state.round == 0:
                raise

    def _frozen(self, case: Case, state: MethodState) -> Tensors:
        """What is deployed and does not change: V's running statistics are fixed too."""
        scope = self._scope(case, state)
        return {
            name: tensor
            for name, tensor in case.learned.items()
            if part_of(name) in DEPLOYED and name not in scope
        }

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        options, request, began = self.options, case.request, time.perf_counter()
        state.round += 1
        self._freeze(case, state)
        log, scores = RoundLog(), {}
        deltas: dict[str, Tensors] = {}
        weights: dict[str, float] = {}
        groups: list[tuple[Sequence[ClientInfo], str]] = [(request.retain, "cross_entropy")]
        forgetting = options.matching and state.numbers["phase"] == "forget"
        if forgetting:
            loss = "bounded" if options.forget == "bounded" else "cross_entropy"
            groups.append((request.forget, loss))
        scope = self._scope(case, state)
        # 8 bits are enough for deltas, not for weights.
        sent = encode(scope, "bfloat16" if options.precision == "int8" else options.precision)
        like = encode(scope, options.precision)
        for clients, loss in groups:
            group_log = RoundLog()
            settings = self._settings(case, state, loss)
            for reply in case.federation.ask(
                "unlearn",
                clients,
                sent,
                settings,
                round=state.round,
                stage=self.name,
                log=group_log,
                like=like,
            ):
                deltas[reply.client] = decode(reply.tensors)
                weights[reply.client] = reply.numbers["samples"]
                scores[reply.client] = reply.numbers["scores"]
            log.answered += group_log.answered
            log.failures |= group_log.failures
            log.costs |= group_log.costs
        evidence = Evidence(scores, request)
        record = {
            "phase": state.numbers["phase"],
            # Of the model that this round started from.
            "validation_accuracy": evidence.accuracy("retain", "validation"),
            **evidence.to_dict(),
            "losses": {},
            "seconds": time.perf_counter() - began,
            **log.to_dict(),
        }
        reason = self._stop(state, evidence) if forgetting else ""
        if reason:
            state.numbers["phase"] = "recover"
            state.numbers["stopped"] = reason
            state.numbers["recovered"] = 0
            # The evidence is about the model this round started from: that one is kept.
            update: Tensors = {}
            state.extra = {}
        elif forgetting:
            # Kept for one round: a step that cost the retain clients too much is taken back.
            state.extra = scope
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
        lost = state.numbers["retain_before"] - evidence.accuracy("retain", "validation")
        if lost > options.delta:
            state.tensors |= state.extra
            return f"the next step cost retain clients {lost:.3f}, more than {options.delta:.3f}"
        held, trained = (evidence.accuracy("forget", split) for split in ("validation", "train"))
        if options.target is not None and held <= options.target:
            return f"held-out forget accuracy {held:.3f} reached {options.target:.3f}"
        peers = evidence.peers()
        if options.peers and peers is not None and trained <= peers:
            return (
                f"forget accuracy {trained:.3f} fell to {peers:.3f}, the peers' held-out accuracy"
            )
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

    def __init__(self, scores: dict[str, Numbers], request: ForgetRequest) -> None:
        self._scores = scores
        self._forget = request.forget_ids
        domains = {client.domain for client in request.forget}
        self._peers = {client.id for client in request.retain if client.domain in domains}

    def accuracy(self, role: str, split: str) -> float:
        """Over all samples of the retain or the forget clients."""
        forget = role == "forget"
        return self._share([c for c in self._scores if (c in self._forget) == forget], split)

    def peers(self) -> float | None:
        """Held-out accuracy of the retain clients that share a forget client's domain."""
        there = [client for client in self._scores if client in self._peers]
        return self._share(there, "validation") if there else None

    def _share(self, clients: list[str], split: str) -> float:
        scores = [self._scores[client][split] for client in clients]
        samples = int(sum(score["samples"] for score in scores))
        return int(sum(score["correct"] for score in scores)) / max(1, samples)

    def to_dict(self) -> dict[str, float]:
        """Accuracy of every role that was asked."""
        asked = {"forget" if client in self._forget else "retain" for client in self._scores}
        return {
            f"{role}_{split}": self.accuracy(role, split)
            for role in sorted(asked)
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
    return math.fsum(float((one[name].double() * other[name].double()).sum()) for name in one)
