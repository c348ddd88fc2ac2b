"""FedCDP: federated unlearning via class-discriminative pruning (Wang et al., WWW 2022)."""

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from foul.errors import UserError
from foul.federation.average import WeightedMean
from foul.federation.federation import RoundLog
from foul.federation.messages import Tensors, join_groups, take_group
from foul.models import DisentangledNet, deployed_state, normalised
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import (
    TrainingOptions,
    ask_to_train,
    mean_change,
    moved,
    round_record,
)

FORGOTTEN = "forgotten"
"""The document of those who are to be forgotten; no domain's document has a name like it."""


class FedCdpOptions(TrainingOptions):
    """How FedCDP unlearns."""

    ratio: float = Field(default=0.1, gt=0, lt=1)
    """Share of all channels that is cut."""
    cap: float = Field(default=0.5, gt=0, lt=1)
    """Largest share of one layer's channels that is cut: scores sum to one in each layer, so a
    common threshold alone would empty the narrow ones."""
    recovery_rounds: int = Field(default=10, ge=0)
    """Rounds of fine-tuning over the retain clients."""
    rate: float = Field(default=0.05, gt=0)
    """Local learning rate of fine-tuning."""
    after_norm: bool = False
    """Look at channels behind their normalisation layer (ours), not at the convolution's output."""
    idf: Literal["paper", "code"] = "paper"
    """How rare a channel is: by the paper's formula, or by that of the authors' code."""
    lowest: bool = False
    """Cut the lowest scores, as the authors' code does by mistake."""

    @property
    def rounds(self) -> int:
        return 1 + self.recovery_rounds

    @model_validator(mode="after")
    def _can_be_reached(self) -> "FedCdpOptions":
        if self.ratio > self.cap:
            raise ValueError(
                f"ratio={self.ratio:g} of the channels cannot be cut with cap={self.cap:g} of each "
                "layer; raise cap or lower ratio"
            )
        return self


class FedCdp(Method[FedCdpOptions]):
    r"""Cut the channels that answer to the forgotten and to few others (the highest TF-IDF, with
    channels as words), and fine-tune the rest over the retain clients.

    :math:`TF_j = A_{fj} / \sum_i A_{fi}` and
    :math:`IDF_j = \log \frac{1 + U}{1 + |\{u : A_{uj} \ge \mathrm{mean}_i A_{ui}\}|}`, where
    :math:`A_{uj}` is the mean activation of channel j over the images of document u. The first
    round measures and cuts, all others repair.

    Ours: the paper's documents are classes; here they are the domains of the retain clients and
    the mean of all forget clients, also if single clients or several domains are forgotten. A cut
    channel's normalisation scale and shift are 0 too, else the layer behind it would see a
    constant. With groups, the others of its group are then normalised without it.

    The authors' code cuts the lowest scores by mistake (`lowest`), has another IDF (`idf=code`) and
    lets cut channels grow again; ours stay cut, as in the paper. A class that nobody has is
    forgotten by any repair; domains share their classes, so here that does not help.
    """

    name: ClassVar[str] = "fedcdp"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(forget_online=True)

    def start(self, case: Case) -> MethodState:
        domains = {client.domain for client in case.request.retain}
        if self.options.idf == "code" and len(domains) < 2:
            # log(2 / (1 + 1)) = 0: no channel would rank above another
            raise UserError(
                f"idf=code tells no channels apart with one retained domain ({min(domains)})",
                "Leave idf at `paper`, or forget less.",
            )
        return MethodState(dict(case.learned))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        number = state.round + 1
        record = self._cut(case, state) if number == 1 else self._repair(case, state, number)
        state.round = number
        if number >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return record

    def _cut(self, case: Case, state: MethodState) -> dict[str, Any]:
        """Measure the channels of all documents, and cut."""
        began, log, options = time.perf_counter(), RoundLog(), self.options
        norms = normalised(DisentangledNet(case.config.model, case.classes, case.image_size))
        documents = self._documents(case, norms, log)
        order = [FORGOTTEN, *sorted(documents.keys() - {FORGOTTEN})]
        ranks = {
            layer: scores(torch.stack([documents[name][layer] for name in order]), options.idf)
            for layer in norms
        }
        cut = chosen(ranks, options.ratio, options.cap, options.lowest)
        mask = kept(cut, norms, case.learned)
        state.tensors = applied(state.tensors, mask)
        state.extra = join_groups({"mask": mask})
        state.numbers["cut"] = {layer: int(gone.sum()) for layer, gone in cut.items()}
        return round_record(began, log) | {"cut": state.numbers["cut"]}

    def _documents(self, case: Case, norms: Mapping[str, str], log: RoundLog) -> dict[str, Tensors]:
        """Mean activations per document and convolution."""
        where = {norm if self.options.after_norm else layer: layer for layer, norm in norms.items()}
        names = {client.id: f"domain/{client.domain}" for client in case.request.retain}
        means: dict[str, WeightedMean] = {}
        for clients in (case.request.forget, case.request.retain):
            own = RoundLog()
            for reply in case.federation.ask(
                "channels",
                clients,
                deployed_state(case.learned),
                {"layers": list(where)},
                round=1,
                stage=self.name,
                log=own,
                like={name: case.learned[f"{norms[where[name]]}.weight"] for name in where},
            ):
                found = {where[name]: tensor for name, tensor in reply.tensors.items()}
                mean = means.setdefault(names.get(reply.client, FORGOTTEN), WeightedMean())
                mean.add(found, reply.numbers["samples"])
            log.absorb(own)
        return {name: mean.result() for name, mean in means.items()}

    def _repair(self, case: Case, state: MethodState, number: int) -> dict[str, Any]:
        """One round of fine-tuning in which cut channels stay cut."""
        began, log, mask = time.perf_counter(), RoundLog(), take_group(state.extra, "mask")
        replies = ask_to_train(
            case,
            case.request.retain,
            state.tensors,
            self.options,
            number,
            self.name,
            log,
            mask=mask,
        )
        state.tensors = applied(moved(state.tensors, mean_change(replies)), mask)
        return round_record(began, log)


def scores(activations: Tensor, idf: Literal["paper", "code"] = "paper") -> Tensor:
    r"""TF-IDF of the channels of one layer for the first of the documents `[U, C]`.

    The code's IDF is :math:`\log \frac{U}{1 + |\{u : A_{uj} \ge \mathrm{mean}_v A_{vj}\}|}`.
    """
    rows = activations.double()
    frequency = rows[0] / rows[0].sum().clamp_min(1e-30)
    by_paper = idf == "paper"
    documents = len(rows) + 1 if by_paper else len(rows)
    found = (rows >= rows.mean(1 if by_paper else 0, keepdim=True)).double().sum(0)
    return frequency * (math.log(documents) - torch.log(1 + found))


def chosen(ranks: Tensors, ratio: float, cap: float, lowest: bool = False) -> Tensors:
    """Which channels to cut: the given share of all, highest scores first, but at most the share
    `cap` of a layer."""
    order = sorted(
        (float(score) if lowest else -float(score), place, channel, layer)
        for place, (layer, values) in enumerate(ranks.items())
        for channel, score in enumerate(values)
    )
    left = round(ratio * len(order))
    cut = {layer: torch.zeros(len(values), dtype=torch.bool) for layer, values in ranks.items()}
    room = {layer: math.floor(cap * len(values)) for layer, values in ranks.items()}
    for _, _, channel, layer in order:
        if left and room[layer]:
            cut[layer][channel] = True
            room[layer] -= 1
            left -= 1
    return cut


def kept(cut: Tensors, norms: Mapping[str, str], tensors: Tensors) -> Tensors:
    """False at the filters of cut channels and at their scale and shift; the tensors of layers
    that lose nothing are left out. The shapes are those that broadcast, to save traffic."""
    mask: Tensors = {}
    for layer, gone in cut.items():
        if not bool(gone.any()):
            continue
        mask[f"{layer}.weight"] = ~gone.view(-1, 1, 1, 1)
        for name in (f"{layer}.bias", f"{norms[layer]}.weight", f"{norms[layer]}.bias"):
            if name in tensors:
                mask[name] = ~gone
    return mask


def applied(tensors: Tensors, mask: Tensors) -> Tensors:
    """The network with 0 where the mask is false."""
    return tensors | {name: torch.where(keep, tensors[name], 0) for name, keep in mask.items()}
