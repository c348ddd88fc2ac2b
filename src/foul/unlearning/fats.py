"""FATS: federated unlearning by total-variation stability (Tao et al., VLDB 2024)."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import Section
from foul.federation.average import WeightedMean
from foul.federation.federation import RoundLog
from foul.federation.messages import ClientInfo, join_groups, take_group
from foul.models import deployed_state
from foul.seeds import numpy_generator
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import TrainingOptions, ask_to_train, moved, round_record


class FatsOptions(Section):
    """How FATS learns; it unlearns by the same rounds."""

    draws: int = Field(default=8, ge=1)
    """Clients drawn in each round, with replacement (K). Fewer are hit later."""
    steps: int = Field(default=20, ge=1)
    """Local steps of a drawn client, each on a batch of its own (E)."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step (b)."""
    rate: float = Field(default=0.1, gt=0)
    """Local learning rate."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of the local SGD, fresh in every round."""


class Fats(Method[FatsOptions]):
    r"""Learn from so few clients per round that one may never have been used: then nothing is to be
    done; else go back to just before its first use and repeat the rounds from there without it.

    Its own learning stage draws a multiset :math:`P_r` of K clients, with replacement, in each of
    R rounds; each drawn client takes E steps on fresh batches, and
    :math:`w_r = \frac1K \sum_{k \in P_r} w_r^k`, a client drawn twice counting twice, whatever its
    number of samples. A request for F restores :math:`w_{r^*-1}` with
    :math:`r^* = \min\{r : P_r \cap F \neq \emptyset\}` and repeats rounds :math:`r^*` to R with new
    draws from the others. This is exact: the result has the law of learning without F, and it is
    blind to the data of F bit for bit.

    A round of K draws from M clients hits m of them with probability :math:`1 - (1 - m/M)^K`: for
    whole domains that is the first round or one of the next, and FATS is sub-sampled FedAvg with a
    nearly full retraining. Only models before a client's first draw are kept, which are all that
    can be asked for.

    Differences from the authors' code, where we follow their paper: it drops repeated draws and
    weights by size, rolls back for clients that were never drawn, and does not repeat as many
    rounds as it took back. Draws are counted, not answers: who was away was drawn nonetheless, and
    the mean is then that of those who answered. Each request starts from the learned state, so that
    no second one follows a first.
    """

    name: ClassVar[str] = "fats"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(own_learning=True)

    def learning(self) -> "FatsLearning":
        return FatsLearning(self.options)

    def start(self, case: Case) -> MethodState:
        assert case.own is not None
        first = case.own.numbers["first"]
        hits = [first[client] for client in case.request.forget_ids if client in first]
        if not hits:
            return MethodState(
                dict(case.own.tensors), finished="none of them was ever drawn: nothing to do"
            )
        before = take_group(case.own.extra, str(min(hits)))
        return MethodState(case.own.tensors | before, numbers={"first": min(hits)})

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        first = state.numbers["first"]
        number = first + state.round
        record = fats_round(case, state, self.options, number, self.name, generation=1)
        state.round += 1
        if number >= case.learned_rounds:
            state.finished = f"rounds {first} to {number} repeated"
        return record


class FatsLearning(Method[FatsOptions]):
    """Sub-sampled FedAvg that keeps the models before each client's first draw."""

    name: ClassVar[str] = "fats-learning"
    version: ClassVar[int] = 2

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.initial), numbers={"first": {}})

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        number, before = state.round + 1, deployed_state(state.tensors)
        record = fats_round(case, state, self.options, number, self.name)
        first = state.numbers["first"]
        new = {client: number for client in record["draws"] if client not in first}
        if new:
            first |= new
            state.extra |= join_groups({str(number): before})
        state.round = number
        if number >= case.learned_rounds:
            state.finished = f"all {number} rounds done"
        return record


def drawn(
    clients: Sequence[ClientInfo], count: int, seed: int, number: int, generation: int = 0
) -> dict[str, int]:
    """How often each client is drawn in this round, by name; never in the order of the list.

    Args:
        generation: 0 when learning; 1 when a round is repeated, with draws of its own.
    """
    names = sorted(client.id for client in clients)
    rng = numpy_generator(seed, f"fats/draws/{generation}", number)
    return dict(sorted(Counter(names[i] for i in rng.integers(len(names), size=count)).items()))


def fats_round(
    case: Case,
    state: MethodState,
    options: FatsOptions,
    number: int,
    stage: str,
    generation: int = 0,
) -> dict[str, Any]:
    """One round over draws from the retain clients."""
    began, log, mean = time.perf_counter(), RoundLog(), WeightedMean()
    draws = drawn(case.request.retain, options.draws, case.federation.seed, number, generation)
    known = {client.id: client for client in case.request.retain}
    local = TrainingOptions(
        rate=options.rate, batch_size=options.batch_size, momentum=options.momentum
    )
    for reply in ask_to_train(
        case,
        [known[client] for client in draws],
        state.tensors,
        local,
        number,
        stage,
        log,
        anew=True,
        # So many steps, not epochs.
        epochs=0,
        min_steps=options.steps,
        fresh=True,
    ):
        mean.add(reply.tensors, draws[reply.client])
    state.tensors = moved(state.tensors, mean.result())
    return {**round_record(began, log), "draws": draws}
