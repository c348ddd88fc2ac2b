"""FedRecovery: differentially private machine unlearning for federated learning (Zhang et al., TIFS
2023). Not FedRecover (Cao et al., 2023)."""

import math
from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import Section
from foul.errors import UserError
from foul.federation.messages import Tensors
from foul.learning.history import corrected
from foul.seeds import torch_generator
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements


class FedRecoveryOptions(Section):
    """How FedRecovery unlearns."""

    scale: float = Field(default=1.0, ge=0)
    """Factor of the correction: 1 is the paper's weighted mean of the rounds' residuals; the number
    of rounds would be their full sum."""
    sigma: float = Field(default=0.02, ge=0)
    """Standard deviation of the noise on every weight. The paper derives it from a privacy budget
    (`noise_for`), which ruins deep networks; no such guarantee is claimed for a chosen one."""


class FedRecovery(Method[FedRecoveryOptions]):
    r"""Subtract a weighted mean of what the forget clients changed in each round, and add noise:
    one step on the server alone, :math:`w_T - \sum_t p_t \delta_t + N(0, \sigma^2)` with
    :math:`p_t = \|\Delta_t\|^2 / \sum_s \|\Delta_s\|^2`.

    The paper's form is for one client and one full-batch step per round; with FedAvg's updates and
    whole domains the residual is :math:`\alpha_F (\bar U_F - \bar U_R)` (ours, equal in the paper's
    case). With server momentum m and rate :math:`\eta_s`, an update moves the model by
    :math:`\eta_s / (1 - m)` of itself in the end, and so does its residual (ours; 1 in the paper's
    case). The paper's sum ends before the last round, ours after it. The weights p_t sum to 1, so
    this is about one round's residual: most of what is forgotten is forgotten by the noise. There
    is no official code; four public ports disagree.
    """

    name: ClassVar[str] = "fedrecovery"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(history=True, individual_updates=True)

    def start(self, case: Case) -> MethodState:
        residual, weight = self._residual(case)
        learning = case.config.learning
        in_the_end = learning.server_rate / (1 - learning.server_momentum)
        tensors = corrected(case.learned, residual, weight, self.options.scale * in_the_end)
        generator = torch_generator(case.federation.seed, "fedrecovery", client=case.request.text)
        if self.options.sigma:
            for name in sorted(residual):
                noise = tensors[name].new_empty(tensors[name].shape).normal_(generator=generator)
                tensors[name] = tensors[name] + self.options.sigma * noise
        return MethodState(tensors, finished="one step on the server")

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        raise AssertionError("a finished method has no steps")

    @staticmethod
    def _residual(case: Case) -> tuple[Tensors, float]:
        """S and Z of the request.

        Raises:
            UserError: nothing was kept for this group of clients.
        """
        assert case.history is not None
        groups, weight = case.history
        if case.request.text in groups:
            return groups[case.request.text], weight
        # The request may spell the group in another way.
        client = case.request.forget[0]
        everyone = case.federation.clients
        members = {
            f"domain:{client.domain}": {c.id for c in everyone if c.domain == client.domain},
            f"client:{client.id}": {client.id},
        }
        for group, ids in members.items():
            if group in groups and ids == case.request.forget_ids:
                return groups[group], weight
        raise UserError(
            f"The run kept no history for '{case.request.text}' "
            f"(it has {', '.join(sorted(groups))})",
            "Forget one of these, or learn with federation.history=domains or clients.",
        )


def noise_for(distance: float, epsilon: float, beta: float) -> float:
    r"""The paper's noise: :math:`\sigma = d / (\sqrt 2 (\sqrt{\ln(1/\beta) + \epsilon} -
    \sqrt{\ln(1/\beta)}))`, for a bound d on the distance from the retrained model."""
    log = math.log(1 / beta)
    return distance / (math.sqrt(2) * (math.sqrt(log + epsilon) - math.sqrt(log)))


def budget_of(distance: float, sigma: float, beta: float) -> float:
    r"""Its inverse: :math:`\epsilon = d^2 / (2 \sigma^2) + (d / \sigma) \sqrt{2 \ln(1/\beta)}`."""
    ratio = distance / sigma
    return ratio**2 / 2 + ratio * math.sqrt(2 * math.log(1 / beta))
