"""Asking clients: who is asked, who answered, what it cost."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from foul.config.schema import FederationConfig
from foul.errors import FoulError
from foul.federation.engine import Engine
from foul.federation.ledger import Cost, Ledger
from foul.federation.messages import ClientInfo, Numbers, Reply, Request, Tensors
from foul.federation.observer import Observer
from foul.seeds import numpy_generator

EVALUATION = "evaluation"
"""The stage of measurements. They are no part of a protocol, so nobody is dropped from them on
purpose: figures must not depend on whom simulated dropout has spared."""


class QuorumError(FoulError):
    """Too few clients answered in a round."""


@dataclass
class RoundLog:
    """Who answered in one round of one task, who did not and why, and each client's cost."""

    answered: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    def absorb(self, other: "RoundLog") -> None:
        """Add those who were asked apart in the same round."""
        self.answered += other.answered
        self.failures |= other.failures
        self.spent(other.costs)

    def spent(self, costs: Mapping[str, Cost]) -> None:
        """Add what the same clients spent on another task of this round."""
        for client, cost in costs.items():
            self.costs[client] = self.costs.get(client, Cost()) + cost

    def to_dict(self) -> dict[str, Any]:
        return {
            "answered": len(self.answered),
            "failures": self.failures,
            "costs": {client: cost.to_dict() for client, cost in self.costs.items()},
        }


class Federation:
    """Server-side view of all clients: the only way methods reach them."""

    def __init__(
        self,
        engine: Engine,
        config: FederationConfig,
        seed: int,
        ledger: Ledger | None = None,
        observer: Observer | None = None,
        without: Collection[str] = (),
    ) -> None:
        self.engine = engine
        self.config = config
        self.seed = seed
        self.ledger = ledger or Ledger()
        self.observer = observer or Observer()
        self.without = frozenset(without)

    @property
    def clients(self) -> Sequence[ClientInfo]:
        """Everybody but those who are left out (`without`): they were erased."""
        return [client for client in self.engine.clients if client.id not in self.without]

    def reseeded(self, seed: int) -> "Federation":
        """The same clients and ledger, with other randomness."""
        return Federation(self.engine, self.config, seed, self.ledger, self.observer, self.without)

    def sample(self, clients: Sequence[ClientInfo], round: int) -> list[ClientInfo]:
        """The clients asked in this round: all, or a share drawn for (seed, round)."""
        count = max(1, round_half_up(self.config.participation * len(clients)))
        if count == len(clients):
            return list(clients)
        rng = numpy_generator(self.seed, "sampling", round)
        chosen = sorted(rng.choice(len(clients), count, replace=False))
        return [clients[position] for position in chosen]

    def ask(
        self,
        task: str,
        clients: Sequence[ClientInfo],
        tensors: Tensors,
        settings: Numbers,
        *,
        round: int,
        stage: str,
        log: RoundLog,
        like: Tensors | None = None,
        instead: Mapping[str, Tensors] | None = None,
    ) -> Iterator[Reply]:
        """Usable replies, one at a time, in the order of the clients; those named in `instead` are
        sent other tensors.

        A client that is away, fails, or answers with tensors that are not finite, or have not the
        names and shapes of `like`, is named in `log.failures` and left out. Below the quorum,
        `QuorumError` is raised after the last reply; the caller's state is then as it was before
        the round.
        """
        present = [client for client in clients if not self._away(client, round, task, stage, log)]
        sent = [(instead or {}).get(client.id, tensors) for client in present]
        requests = [
            Request(client.id, task, round, own, settings)
            for client, own in zip(present, sent, strict=True)
        ]
        for request, reply in zip(requests, self.engine.run(requests), strict=True):
            cost = Cost(request.bytes, reply.bytes, reply.flops, 0, reply.seconds)
            self.ledger.record(stage, cost)
            log.spent({reply.client: cost})
            problem = reply.error or not_finite(reply.tensors)
            if not problem and like is not None:
                problem = misfit(reply.tensors, like)
            if problem:
                log.failures[reply.client] = problem
            else:
                log.answered.append(reply.client)
                yield reply
            done = len(log.answered) + len(log.failures)
            self.observer.on_client(task, reply.client, done, len(clients))
        self._check_quorum(clients, round, log)

    def _away(self, client: ClientInfo, round: int, task: str, stage: str, log: RoundLog) -> bool:
        chance = 0.0 if stage == EVALUATION else self.config.dropout
        if (
            chance
            and numpy_generator(self.seed, f"dropout/{task}", round, client.id).random() < chance
        ):
            log.failures[client.id] = "away (simulated dropout)"
            return True
        return False

    def _check_quorum(self, clients: Sequence[ClientInfo], round: int, log: RoundLog) -> None:
        # 0.55 * 20 is a little more than 11 in floating point; 11 clients are enough.
        needed = max(1, math.ceil(self.config.quorum * len(clients) - 1e-9))
        if len(log.answered) >= needed:
            return
        reasons = "; ".join(f"{client}: {why}" for client, why in sorted(log.failures.items())[:3])
        raise QuorumError(
            f"Round {round}: {len(log.answered)} of {len(clients)} clients answered, "
            f"the quorum is {needed} ({reasons})",
            "Mend the clients or lower federation.quorum, then continue with --resume.",
        )


def misfit(tensors: Tensors, like: Tensors) -> str:
    """Why these tensors are not like those: the first name, shape or type that differs; else
    empty."""
    for name in sorted(tensors.keys() ^ like.keys()):
        return f"tensor '{name}' is {'unexpected' if name in tensors else 'missing'}"
    for name, tensor in tensors.items():
        if tensor.shape != like[name].shape:
            have, want = tuple(tensor.shape), tuple(like[name].shape)
            return f"tensor '{name}' has shape {have}, expected {want}"
        if tensor.dtype != like[name].dtype:
            return f"tensor '{name}' is {tensor.dtype}, expected {like[name].dtype}"
    return ""


def not_finite(tensors: Tensors) -> str:
    """Why these tensors cannot be used: the first one with a NaN or an infinity; else empty."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return f"tensor '{name}' holds NaN or infinity"
    return ""


def round_half_up(value: float) -> int:
    """Rounding without Python's banker's rule: 2.5 clients are 3."""
    return math.floor(value + 0.5)
