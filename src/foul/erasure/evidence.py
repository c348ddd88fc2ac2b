"""The evidence about a model, and whether the policy accepts it."""

from dataclasses import asdict, dataclass
from typing import Any

from foul.config.schema import Config
from foul.erasure.policy import Accept
from foul.evaluation.accuracy import evaluate
from foul.evaluation.forgetting import SPLITS, assess
from foul.federation.build import Setting
from foul.federation.federation import QuorumError
from foul.federation.messages import Tensors
from foul.unlearning.request import ForgetRequest

Figures = dict[str, Any]
"""Keys of `evaluation/metrics.py`, and `mia_low` and `mia_high`; None: could not be measured."""

KEYS = (
    *("fa", "ra", "ta", "forget_test", "retain_test", "mia_auc", "mia_low", "mia_high"),
    *("mia_accuracy", "mia_tpr_1", "k_probe", "v_probe", "backdoor"),
)


@dataclass(frozen=True)
class Check:
    """One threshold of the policy against one figure."""

    key: str
    what: str
    value: float | None
    at_most: float | None
    at_least: float | None
    passed: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        value = "not measured" if self.value is None else f"{self.value:.3f}"
        limit = f"at most {self.at_most}" if self.at_most is not None else ""
        limit = limit or f"at least {self.at_least}"
        return f"{self.what}: {value} ({limit})"


def measure(
    setting: Setting, config: Config, tensors: Tensors, request: ForgetRequest, reachable: bool
) -> Figures:
    """Figures of a model with respect to a request. The forgotten clients are asked only if they
    can be reached; if too few of them answer, their figures are missing."""
    if reachable:
        try:
            backdoor = config.backdoor
            return assess(setting.federation, tensors, request, backdoor).summary()
        except QuorumError:
            pass
    scores = evaluate(setting.federation, tensors, splits=SPLITS, clients=request.retain)
    figures: Figures = dict.fromkeys(KEYS)
    for key, split in (("ra", "train"), ("retain_test", "test")):
        total = scores.total(split)
        figures[key] = total.correct / total.samples if total.samples else None
    return figures


def judge(before: Figures, after: Figures, accept: Accept, exact: bool) -> list[Check]:
    """Every threshold of the policy against what was measured.

    A figure that is missing passes if the policy says so of this kind of method.
    """
    missing = accept.missing == "accept" or (accept.missing == "exact" and exact)

    def at_most(key: str, what: str, value: float | None, limit: float) -> Check:
        passed = missing if value is None else value <= limit
        return Check(key, what, value, limit, None, passed)

    def at_least(key: str, what: str, value: float | None, limit: float) -> Check:
        passed = missing if value is None else value >= limit
        return Check(key, what, value, None, limit, passed)

    return [
        at_most(
            "mia_high", "upper end of the attack's AUC", after["mia_high"], accept.mia_auc_high
        ),
        at_least("mia_low", "lower end of the attack's AUC", after["mia_low"], accept.mia_auc_low),
        at_most(
            "fa",
            "accuracy on forgotten training data above that on test data",
            _difference(after["fa"], after["forget_test"]),
            accept.forget_gap,
        ),
        at_most(
            "ra",
            "loss on retained data",
            _difference(before["ra"], after["ra"]),
            accept.retain_loss,
        ),
        at_most(
            "retain_test",
            "loss on retained test data",
            _difference(before["retain_test"], after["retain_test"]),
            accept.retain_test_loss,
        ),
    ]


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
