"""FUSED: reversible federated unlearning by selective sparse adapters (Zhong et al., CVPR 2025)."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field

from foul.errors import UserError
from foul.federation.average import WeightedMean
from foul.federation.federation import QuorumError, RoundLog
from foul.federation.messages import (
    ClientInfo,
    Numbers,
    Reply,
    Tensors,
    join_groups,
    key_of,
    take_group,
)
from foul.learning.adapters import Adapters, make_adapters
from foul.models import DEPLOYED, deployed_state
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import (
    TrainingOptions,
    local_recipe,
    mean_change,
    moved,
    record_mean,
    round_record,
)


class FusedOptions(TrainingOptions):
    """How FUSED unlearns, whatever the form of its adapters."""

    layers: int = Field(default=4, ge=1)
    """So many layers get adapters: those that a round of training changes most."""
    adapter_rounds: int = Field(default=5, ge=0)
    """Rounds in which the retain clients train the adapters."""
    rate: float = Field(default=0.02, gt=0)
    """Local learning rate of the first round, in which the whole network is trained."""
    adapter_rate: float = Field(default=1.0, gt=0)
    """Local learning rate of the adapters."""

    @property
    def rounds(self) -> int:
        return 1 + self.adapter_rounds

    @abstractmethod
    def form(self) -> Numbers:
        """The adapters, as clients are told to make them."""


class SparseOptions(FusedOptions):
    """How FUSED unlearns with sparse adapters."""

    density: float = Field(default=0.08, gt=0, le=1)
    """Share of the chosen layers' weights that change. The paper does not say it: ours is chosen
    for its traffic, 2 to 3 % of the model in each direction."""

    def form(self) -> Numbers:
        return {"form": "sparse", "density": self.density}


class LowRankOptions(FusedOptions):
    """How FUSED unlearns with low-rank adapters."""

    adapter_rate: float = Field(default=0.3, gt=0)
    """Local learning rate of the adapters; from 1 on they diverge on PACS."""
    rank: int = Field(default=4, ge=1)
    """Rank r of each adapter. The authors have 16 on layers of 512 channels, which is 2 to 3 % of
    the model in each direction, as 4 is for our small one."""
    alpha: float = Field(default=8.0, gt=0)
    """Adapters are multiplied by alpha / r; the authors' quotient is 2."""

    def form(self) -> Numbers:
        return {"form": "low-rank", "rank": self.rank, "alpha": self.alpha}


class Fused(Method[FusedOptions]):
    r"""Freeze the learned model and train small adapters on its most sensitive layers over the
    retain clients, to overwrite what the forgotten taught; without the adapters it is the learned
    model again.

    First round: all clients train the learned model p for a round and send it back as
    :math:`p^n`; the layers of the largest
    :math:`\mathrm{Diff}_l = \sum_n \frac{|D_n|}{|D|} \sum_{ij} |p^n_{l,ij} - p_{l,ij}|` are chosen.
    All others: the retain clients train the adapters A of :math:`p_l + M_l \odot A_l` (M a random
    mask from a shared seed, so that only the values travel), and the server averages A.

    Weights and biases of a layer count as one, normalisation layers are not chosen (the text's four
    layers include three of their scales; the authors' code adapts convolutions), and their
    statistics stay fixed, else removing the adapters would not restore the model. Diff grows with
    the number of weights; the record also has its mean per weight. The authors' code has neither
    masks nor Diff: it is LoRA on layers chosen by hand, and most likely what their table shows
    (`fused-lora`, here on layers chosen by Diff, without dropout, factors averaged one by one).

    Nothing pushes forget accuracy down: on clean data that other clients' data resembles, little
    may be forgotten.
    """

    name: ClassVar[str] = "fused"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(forget_online=True, individual_updates=True)

    def __init__(self, options: FusedOptions) -> None:
        super().__init__(options)
        self._ready: set[str] | None = None

    def start(self, case: Case) -> MethodState:
        there = len(layers_of(case.learned))
        if self.options.layers > there:
            raise UserError(
                f"layers={self.options.layers}: this network has only {there} such layers",
                f"Choose at most layers={there}.",
            )
        self._ready = set()
        return MethodState(
            dict(case.learned), numbers={"base": key_of(deployed_state(case.learned))}
        )

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        number = state.round + 1
        record = self._choose(case, state) if number == 1 else self._adapt(case, state, number)
        state.round = number
        if number >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return record

    def _choose(self, case: Case, state: MethodState) -> dict[str, Any]:
        """All clients train for a round; the layers that change most get adapters."""
        began, log, mean = time.perf_counter(), RoundLog(), WeightedMean()
        layers, model = layers_of(case.learned), deployed_state(case.learned)
        told = {"parts": list(DEPLOYED), "rate": self.options.rate}
        for clients in (case.request.forget, case.request.retain):
            for reply in self._ask(case, state, 1, log, "survey", clients, {}, told, model):
                mean.add(distances(reply.tensors, layers), reply.numbers["samples"])
        diff = {layer: float(distance) for layer, distance in mean.result().items()}
        ranking = sorted(layers, key=lambda layer: -diff[layer])
        chosen = ranking[: self.options.layers]
        names = [name for layer in layers if layer in chosen for name in layers[layer]]
        # Copies: a file of the state cannot hold the same memory twice.
        base = {name: case.learned[name].clone() for name in names}
        start = self._adapters(case, base).start()
        state.extra = join_groups({"base": base, "adapters": start})
        state.numbers["layers"] = chosen
        sizes = {layer: sum(model[n].numel() for n in layers[layer]) for layer in layers}
        return round_record(began, log) | {
            "layers": chosen,
            "distances": {layer: diff[layer] for layer in ranking},
            "mean_distances": {layer: diff[layer] / sizes[layer] for layer in ranking},
        }

    def _adapt(self, case: Case, state: MethodState, number: int) -> dict[str, Any]:
        """The retain clients train the adapters, the server averages them."""
        began, log = time.perf_counter(), RoundLog()
        base, values = take_group(state.extra, "base"), take_group(state.extra, "adapters")
        told = {
            "rate": self.options.adapter_rate,
            "adapted": list(base),
            "adapters": self.options.form() | {"seed": case.federation.seed},
        }
        replies = self._ask(
            case, state, number, log, "adapt", case.request.retain, values, told, values
        )
        values = moved(values, mean_change(replies))
        state.tensors = state.tensors | self._adapters(case, base).adapted(values)
        state.extra = join_groups({"base": base, "adapters": values})
        return round_record(began, log)

    def _adapters(self, case: Case, base: Tensors) -> Adapters:
        return make_adapters(base, **self.options.form(), seed=case.federation.seed)

    # Asking clients

    def _ask(
        self,
        case: Case,
        state: MethodState,
        number: int,
        log: RoundLog,
        task: str,
        clients: Sequence[ClientInfo],
        tensors: Tensors,
        told: Numbers,
        like: Tensors,
    ) -> Iterator[Reply]:
        """Training on top of the learned model, which is sent to those who have not got it."""
        own, options = RoundLog(), self.options
        delivery = self._deliver(case, state, number, clients)
        settings: Numbers = {
            "base": state.numbers["base"],
            "loss": "cross_entropy",
            "epochs": options.epochs,
            "learning": local_recipe(case, options.batch_size, options.momentum),
            "seed": case.federation.seed,
            **told,
        }
        yield from case.federation.ask(
            task, clients, tensors, settings, round=number, stage=self.name, log=own, like=like
        )
        record_mean(case, self.name, like, own)
        log.absorb(own)
        log.spent(delivery.costs)

    def _deliver(
        self, case: Case, state: MethodState, number: int, clients: Sequence[ClientInfo]
    ) -> RoundLog:
        """Send the learned model to those who have not got it: all, or who was away before."""
        log = RoundLog()
        if self._ready is None:
            # Resumed by another process: do they still have what they were sent?
            self._ready = set()
            log.spent(self._offer(case, state, number, clients, {}).costs)
        missing = [client for client in clients if client.id not in self._ready]
        if missing:
            model = deployed_state(case.learned)
            log.spent(self._offer(case, state, number, missing, model).costs)
        return log

    def _offer(
        self,
        case: Case,
        state: MethodState,
        number: int,
        clients: Sequence[ClientInfo],
        model: Tensors,
    ) -> RoundLog:
        assert self._ready is not None
        log, settings = RoundLog(), {"base": state.numbers["base"]}
        try:
            for reply in case.federation.ask(
                "keep", clients, model, settings, round=number, stage=self.name, log=log
            ):
                if reply.numbers["ready"]:
                    self._ready.add(reply.client)
        except QuorumError:
            # It is the round itself that counts who is there.
            pass
        return log


def layers_of(tensors: Tensors) -> dict[str, list[str]]:
    """The deployed layers that can have adapters, and their tensors: weights of two or more
    dimensions and their biases, so no normalisation layers."""
    model = deployed_state(tensors)
    layers = [
        name.removesuffix(".weight")
        for name, tensor in model.items()
        if name.endswith(".weight") and tensor.dim() > 1
    ]
    return {
        layer: [name for name in (f"{layer}.weight", f"{layer}.bias") if name in model]
        for layer in layers
    }


def distances(change: Tensors, layers: dict[str, list[str]]) -> Tensors:
    """The Manhattan distance that each layer has moved."""
    return {
        layer: torch.stack([change[name].double().abs().sum() for name in names]).sum()
        for layer, names in layers.items()
    }


def without_adapters(state: MethodState) -> Tensors:
    """The learned model, bit for bit."""
    return state.tensors | take_group(state.extra, "base")
