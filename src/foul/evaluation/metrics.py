"""What each figure means: its unit, its range, which direction is better, its gap to Retrain."""

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "as retrain"]


@dataclass(frozen=True)
class Metric:
    """One figure of a result."""

    key: str
    title: str
    meaning: str
    better: Better
    unit: str = "%"

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Smallest and largest stored value; None where there is none."""
        if self.unit in ("%", ""):
            return 0.0, 1.0
        # Rates per round may be negative.
        return None if self.unit.endswith("/round") else 0.0, None

    @property
    def scale(self) -> float:
        """Stored fractions are shown as percent."""
        return 100.0 if self.unit == "%" else 1.0

    def gap(self, value: float, retrain: float) -> float:
        """Difference to Retrain in the shown unit (points for percentages)."""
        return self.scale * (value - retrain)

    def loss(self, value: float, retrain: float) -> float:
        """How much worse than Retrain, never negative. Where Retrain is the aim, either direction
        is worse: forgetting more than Retrain shows too."""
        gap = self.gap(value, retrain)
        if self.better == "as retrain":
            return abs(gap)
        return max(0.0, gap if self.better == "lower" else -gap)


_ALL = (
    Metric("fa", "FA", "accuracy on the forget clients' training data", "as retrain"),
    Metric("ra", "RA", "accuracy on the retain clients' training data", "higher"),
    Metric("ta", "TA", "accuracy on the test data of all domains", "higher"),
    Metric("forget_test", "forget test", "accuracy on forget clients' test data", "as retrain"),
    Metric("retain_test", "retain test", "accuracy on retain clients' test data", "higher"),
    Metric("mia_auc", "MIA AUC", "AUC of the loss attack; 0.5 is chance", "as retrain", unit=""),
    Metric(
        "mia_accuracy",
        "MIA",
        "balanced accuracy of the loss attack, its threshold fitted on other samples",
        "as retrain",
    ),
    Metric(
        "mia_tpr_1", "TPR@1%", "members found by the loss attack at 1 % false alarms", "as retrain"
    ),
    Metric("k_probe", "K probe", "forget labels that a linear probe reads off z_K", "as retrain"),
    Metric("v_probe", "V probe", "forget labels that a linear probe reads off z_V", "as retrain"),
    Metric("kl_forget", "KL forget", "KL of Retrain's answers on forget data", "lower", "nats"),
    Metric("kl_retain", "KL retain", "KL of Retrain's answers on retain data", "lower", "nats"),
    Metric("kl_test", "KL test", "KL of Retrain's answers on test data", "lower", "nats"),
    Metric("backdoor", "backdoor", "test images with the trigger that obey it", "as retrain"),
    Metric(
        "relearn", "relearn", "rounds until FA is back when they rejoin", "as retrain", "rounds"
    ),
    Metric("t2f", "T2F", "points of FA forgotten per round", "higher", "points/round"),
    Metric("recovery", "recovery", "points of RA regained per round", "higher", "points/round"),
    Metric("rounds", "rounds", "rounds until it stopped", "lower", "rounds"),
    Metric("rounds_to_retrain", "to Retrain", "first round near Retrain's FA", "lower", "rounds"),
    Metric("bytes", "bytes", "bytes that crossed the border, both ways", "lower", "B"),
    Metric("flops", "FLOPs", "FLOPs of clients and server", "lower", "FLOP"),
    Metric("seconds", "client time", "seconds of client work", "lower", "s"),
    Metric("wall_seconds", "wall time", "seconds on the clock, without evaluation", "lower", "s"),
    Metric("disk", "disk", "bytes of stored history and caches that it needs", "lower", "B"),
)
METRICS: dict[str, Metric] = {metric.key: metric for metric in _ALL}
"""Every metric by its key in `results.json`."""

HEADLINE = ("fa", "ra", "ta", "mia_accuracy")
"""Decision 16: the mean of what these lose against Retrain, in points, is a method's headline."""
