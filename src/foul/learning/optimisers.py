"""Local optimisers beside SGD: steps that leave some weights alone, steps of few values that change
many weights, and steps of equal size."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from foul.config.schema import LearningConfig
from foul.learning.adapters import Adapters
from foul.learning.local import MakeOptimiser, sgd


def masked_sgd(mask: Mapping[str, Tensor]) -> MakeOptimiser:
    """SGD in which the weights at zeros of `mask` feel nothing: no gradient, momentum or decay.

    Parameters without a mask are trained as ever.
    """

    def make(
        parameters: Mapping[str, nn.Parameter], rate: float, config: LearningConfig
    ) -> torch.optim.Optimizer:
        optimiser = sgd(parameters, rate, config)
        masked = [(parameters[n], m.to(parameters[n])) for n, m in mask.items() if n in parameters]

        def hide(*_: Any) -> None:
            for parameter, kept in masked:
                if parameter.grad is not None:
                    parameter.grad.mul_(kept)
                    # Weight decay is a gradient too: it is taken off here, where SGD adds it.
                    parameter.grad.sub_(config.weight_decay * parameter.detach() * (1 - kept))

        optimiser.register_step_pre_hook(hide)
        return optimiser

    return make


def adapting(adapters: Adapters, values: Mapping[str, nn.Parameter]) -> MakeOptimiser:
    """SGD of the adapters' values; the weights follow them, and no others change.

    The weights' gradients determine those of the values exactly, so the network need not know that
    it has adapters. Momentum and decay are of the values.
    """

    def make(
        parameters: Mapping[str, nn.Parameter], rate: float, config: LearningConfig
    ) -> torch.optim.Optimizer:
        for name, parameter in parameters.items():
            # Whatever an earlier task left would count when gradients are clipped.
            parameter.grad = None
            parameter.requires_grad_(name in adapters.base)
        optimiser = sgd(values, rate, config)

        def lead(*_: Any) -> None:
            given = {name: _gradient(parameters[name]) for name in adapters.base}
            found = adapters.gradients(dict(values), given)
            for name, value in values.items():
                value.grad = found[name].detach()

        def follow(*_: Any) -> None:
            with torch.no_grad():
                for name, tensor in adapters.adapted(dict(values)).items():
                    parameters[name].copy_(tensor)
                    parameters[name].grad = None

        optimiser.register_step_pre_hook(lead)
        optimiser.register_step_post_hook(follow)
        return optimiser

    return make


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Zero where the loss does not depend on it."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def ternary(tau: float, sigma: float) -> MakeOptimiser:
    """FFMU's steps: each weight moves by the rate up, down, or not at all."""

    def make(
        parameters: Mapping[str, nn.Parameter], rate: float, config: LearningConfig
    ) -> torch.optim.Optimizer:
        return Ternary(parameters.values(), rate, tau, sigma)

    return make


class Ternary(torch.optim.Optimizer):
    r"""w <- w - eta q(g / rms(g)), with q of `quantised`."""

    def __init__(self, parameters: Any, rate: float, tau: float, sigma: float) -> None:
        super().__init__(parameters, {"lr": rate, "tau": tau, "sigma": sigma})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    size = parameter.grad.square().mean().sqrt().clamp_min(1e-30)
                    q = quantised(parameter.grad / size, group["tau"], group["sigma"])
                    parameter.sub_(q, alpha=group["lr"])


def quantised(gradient: Tensor, tau: float, sigma: float) -> Tensor:
    r"""The likeliest of +1 (:math:`v > \tau`), -1 (:math:`v < -\tau`) and 0 for
    :math:`v = g + \mathcal N(0, \sigma^2)`, per coordinate.

    With :math:`P_+ = 1 - \Phi((\tau - g)/\sigma)`, :math:`P_- = \Phi((-\tau - g)/\sigma)` and
    :math:`P_0 = 1 - P_+ - P_-`.
    """
    up = _phi((gradient - tau) / sigma)
    down = _phi((-tau - gradient) / sigma)
    rest = 1 - up - down
    larger = torch.maximum(up, down)
    return torch.where(rest >= larger, torch.zeros_like(gradient), gradient.sign())


def _phi(x: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-x / math.sqrt(2))
