"""NoT: federated unlearning via weight negation (Khalil et al., CVPR 2025)."""

from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import Section
from foul.errors import UserError
from foul.federation.messages import Tensors
from foul.learning.going_on import going_on, staying_fixed
from foul.models import DisentangledNet, normalised
from foul.names import hint
from foul.unlearning.controls import fedavg_round
from foul.unlearning.method import Case, Method, MethodState


class NotOptions(Section):
    """How NoT unlearns."""

    layers: tuple[str, ...] = ("E.conv1",)
    """Layers whose parameters are negated; the paper negates the first one. Normalisation layers
    behind them must not be: the two signs would cancel."""
    rounds: int = Field(default=10, ge=1)
    """Rounds of fine-tuning over the retain clients."""
    rate: float = Field(default=1.0, gt=0)
    """Local rates as a share of those of the learning stage."""


class NoT(Method[NotOptions]):
    r"""Negate the first layer, so that the layers behind it no longer fit, and fine-tune over the
    retain clients: :math:`\theta'_l = -\theta_l` for l in `layers`.

    Weights and biases are negated (the paper's equation 3), so that the layer's output is exactly
    minus what it was. Where batch statistics stay fixed, the running mean of the layer behind it
    changes its sign too; else it would follow by itself. There is no official code. Rounds and
    rates are in an appendix that we could not read: ours were searched on validation data.
    """

    name: ClassVar[str] = "not"
    version: ClassVar[int] = 2

    def start(self, case: Case) -> MethodState:
        tensors = negated(case.learned, self.options.layers)
        if staying_fixed(case.config.learning):
            norms = normalised(DisentangledNet(case.config.model, case.classes, case.image_size))
            means = [
                f"{norms[layer]}.running_mean" for layer in self.options.layers if layer in norms
            ]
            tensors |= {name: -tensors[name] for name in means if name in tensors}
        return MethodState(tensors)

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        config = going_on(case.config.learning, self.options.rounds, self.options.rate)
        record = fedavg_round(case, state, config, self.name)
        if state.round >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return record


def negated(tensors: Tensors, layers: tuple[str, ...]) -> Tensors:
    """The network with the sign of these layers' weights and biases changed.

    Raises:
        UserError: there is no such layer.
    """
    known = [name.removesuffix(".weight") for name in tensors if name.endswith(".weight")]
    for layer in layers:
        if layer not in known:
            raise UserError(f"The network has no layer '{layer}'", hint(layer, known))
    names = [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]
    return tensors | {name: -tensors[name] for name in names if name in tensors}
