"""FFMU: fast federated machine unlearning with nonlinear functional theory (Che et al., ICML 2023),
as far as it is known."""

import math
import time
from statistics import NormalDist
from typing import Any, ClassVar

from pydantic import Field

from foul.config.schema import LearningConfig, Section
from foul.federation.federation import RoundLog
from foul.learning.rounds import rate_scale
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements
from foul.unlearning.training import TrainingOptions, ask_to_train, mean_change, moved, round_record


class QuantisedOptions(Section):
    """How clients learn by quantised steps."""

    epochs: float = Field(default=2.0, gt=0)
    """Local epochs per round."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step."""
    rate: float = Field(default=2.5e-3, gt=0)
    """How far a local step moves a weight, if it does; it falls over the rounds of learning."""
    tau: float = Field(default=0.1, gt=0)
    """Threshold of the quantiser, as a share of the gradient's root mean square."""
    sigma: float = Field(default=0.1, gt=0)
    """Deviation of the noise it is smoothed with. From 2.33 tau on no weight stays where it is."""


class Ffmu(Method[QuantisedOptions]):
    r"""Learn by steps so coarse that a few samples less would not have changed them: the learned
    model has then forgotten any few samples beforehand, and a request changes nothing.

    Its own learning stage is FedAvg with local steps :math:`w \leftarrow w - \eta q(g / rms(g))`,
    where q is the likeliest of +1 (:math:`v > \tau`), -1 (:math:`v < -\tau`) and 0 for
    :math:`v = g + N(0, \sigma^2)`. A weight's step is certain to be the same while its gradient
    moves less than :math:`\rho = \frac\sigma2 (\Phi^{-1}(p_A) - \Phi^{-1}(p_B))`, p_A and p_B being
    the likeliest two; without m of N samples, whose gradients are at most G, the mean moves by
    at most :math:`2 m G / N`. So the budget is :math:`\rho N / (2 G)` samples. What is reported is
    the most it can be: no weight that stays where it is has a larger :math:`\rho` than one without
    a gradient, and G cannot be less than the mean's own size, 1.

    A reconstruction: there is no official code, and we could not read more than the abstract and
    what others write of it. That gradients are divided by their root mean square, tensor by tensor,
    is ours: else none would reach the threshold. Whole domains are beyond the budget of the default
    steps, and the model is left as it was; `ffmu-adapted` does something about them.
    """

    name: ClassVar[str] = "ffmu"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(own_learning=True)

    def learning(self) -> "FfmuLearning":
        return FfmuLearning(self.options)

    def start(self, case: Case) -> MethodState:
        asked = sum(client.samples["train"] for client in case.request.forget)
        known = asked + sum(client.samples["train"] for client in case.request.retain)
        budget = certified_radius(0.0, self.options.tau, self.options.sigma) * known / 2
        within = asked <= budget
        return MethodState(
            dict(case.learned),
            numbers={"budget": budget, "asked": asked, "within": within},
            finished=f"unchanged: {asked} of {known} samples are to be forgotten, the certified "
            f"budget of at most {budget:.0f} {'may cover' if within else 'does not cover'} them",
        )

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        raise AssertionError("a finished method has no steps")


class FfmuAdaptedOptions(QuantisedOptions):
    """How FFMU learns, and how it goes on without the forget clients."""

    rounds: int = Field(default=5, ge=1)
    """Rounds over the retain clients."""
    share: float = Field(default=1.0, gt=0)
    """Size of their steps as a share of `rate`."""


class FfmuAdapted(Method[FfmuAdaptedOptions]):
    """FFMU's learning, and after a request some more rounds of it over the retain clients alone.

    An adaptation of ours to whole domains, which FFMU's budget does not cover.
    """

    name: ClassVar[str] = "ffmu-adapted"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(own_learning=True)

    def learning(self) -> "FfmuLearning":
        fields = set(QuantisedOptions.model_fields)
        return FfmuLearning(QuantisedOptions(**self.options.model_dump(include=fields)))

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.learned))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        rate = self.options.share * self.options.rate
        record = quantised_round(case, state, self.options, rate, self.name)
        if state.round >= self.options.rounds:
            state.finished = f"all {self.options.rounds} rounds done"
        return record


class FfmuLearning(Method[QuantisedOptions]):
    """FedAvg with quantised steps, whose size falls along half a cosine."""

    name: ClassVar[str] = "ffmu-learning"
    version: ClassVar[int] = 2

    def start(self, case: Case) -> MethodState:
        return MethodState(dict(case.initial))

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        falling = LearningConfig(rounds=case.learned_rounds, schedule="cosine")
        rate = self.options.rate * rate_scale(falling, state.round + 1)
        record = quantised_round(case, state, self.options, rate, self.name, anew=True)
        if state.round >= case.learned_rounds:
            state.finished = f"all {state.round} rounds done"
        return record


def quantised_round(
    case: Case,
    state: MethodState,
    options: QuantisedOptions,
    rate: float,
    stage: str,
    anew: bool = False,
) -> dict[str, Any]:
    """One round of FedAvg over the retain clients, with quantised local steps of this size."""
    began, number, log = time.perf_counter(), state.round + 1, RoundLog()
    local = TrainingOptions(epochs=options.epochs, batch_size=options.batch_size)
    replies = ask_to_train(
        case,
        case.request.retain,
        state.tensors,
        local,
        number,
        stage,
        log,
        rate=rate,
        anew=anew,
        tau=options.tau,
        sigma=options.sigma,
    )
    state.tensors = moved(state.tensors, mean_change(replies))
    state.round = number
    return round_record(began, log)


def certified_radius(gradient: float, tau: float, sigma: float) -> float:
    r"""How far a gradient may move before its quantised step can be another:
    :math:`\frac\sigma2 (\Phi^{-1}(p_A) - \Phi^{-1}(p_B))`, at most about 37 sigma."""
    # Either sign has the same radius; with this one no digits are lost near 1.
    size = abs(gradient)
    up, down = _phi((size - tau) / sigma), _phi((-tau - size) / sigma)
    rest = _phi((tau - size) / sigma) - down
    least, second, _ = sorted((up, down, rest))
    return max(0.0, -sigma / 2 * (_quantile(least + second) + _quantile(second)))


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _quantile(probability: float) -> float:
    return NormalDist().inv_cdf(max(probability, 1e-300))
