"""How the report shows the metrics of a result: names, units, and what stands beside them."""

from dataclasses import dataclass
from enum import Enum

from foul.evaluation.metrics import METRICS, Better, Metric


class Beside(Enum):
    """What stands beside a value, to be read together with it."""

    GAP = "its difference to Retrain"
    SHARE = "its percentage of Retrain's"
    NOTHING = ""


@dataclass(frozen=True)
class Unit:
    """From a stored value to a shown one.

    Attributes:
        scale: what to multiply with.
        digits: decimal places.
        counted: whether it is a number of things: rounds are not 7.0.
    """

    scale: float = 1.0
    digits: int = 1
    counted: bool = False


PERCENT = Unit(100.0)
MEGA = Unit(1e-6)
GIGA = Unit(1e-9, 0)
COUNT = Unit(counted=True)


@dataclass(frozen=True)
class Shown:
    """A metric in a table."""

    metric: Metric
    name: str
    unit: Unit
    beside: Beside = Beside.NOTHING

    @property
    def key(self) -> str:
        return self.metric.key

    @property
    def better(self) -> Better:
        return self.metric.better


def _cost(key: str, name: str, unit: Unit, meaning: str = "") -> Shown:
    metric = Metric(key, name, meaning, "lower") if meaning else METRICS[key]
    return Shown(metric, name, unit, Beside.SHARE)


DISTANCE = Shown(
    Metric(
        "distance",
        "off by",
        "mean, in points, of |FA gap|, the shortfalls of RA and TA below Retrain, and |MIA gap|"
        " where it was measured; 0 is Retrain",
        "lower",
        "points",
    ),
    "off by",
    Unit(),
)

COMPARISON = (
    DISTANCE,
    Shown(METRICS["fa"], "FA %", PERCENT, Beside.GAP),
    Shown(METRICS["ra"], "RA %", PERCENT, Beside.GAP),
    Shown(METRICS["ta"], "TA %", PERCENT, Beside.GAP),
    Shown(METRICS["mia_accuracy"], "MIA %", PERCENT, Beside.GAP),
    Shown(METRICS["mia_auc"], "MIA AUC", Unit(digits=3), Beside.GAP),
    Shown(METRICS["t2f"], "T2F", Unit(digits=2)),
    Shown(METRICS["rounds_to_retrain"], "to Retrain", COUNT),
    Shown(METRICS["rounds"], "rounds", COUNT),
    _cost("bytes", "MB", MEGA),
    _cost("flops", "GFLOP", GIGA),
)
"""The columns of the comparison."""

COSTS = (
    _cost("bytes_down", "MB down", MEGA, "from the server to the clients"),
    _cost("bytes_up", "MB up", MEGA, "from the clients to the server"),
    _cost("bytes", "MB", MEGA),
    _cost("flops_client", "client GFLOP", GIGA, "FLOPs of the clients"),
    _cost("flops_server", "server GFLOP", Unit(1e-9, 2), "FLOPs of the server"),
    _cost("flops", "GFLOP", GIGA),
    _cost("seconds", "client s", Unit()),
    _cost("wall_seconds", "wall s", Unit()),
    _cost("disk", "MB on disk", MEGA),
)
"""The columns of the table of costs: the paper's Table 2."""

KEYS = tuple(dict.fromkeys(shown.key for shown in (*COMPARISON, *COSTS)))
