"""How far a method is from Retrain (decision 16)."""

from collections.abc import Mapping, Sequence
from typing import Any

from foul.evaluation.metrics import HEADLINE, METRICS
from foul.evaluation.time_to_forget import recovery, rounds_to_reach, time_to_forget


def gaps(result: Mapping[str, Any], retrain: Mapping[str, Any]) -> dict[str, float]:
    """Differences to Retrain in points (MIA AUC: of 1), and costs as fractions of Retrain's."""
    told = {
        f"{key}_gap": METRICS[key].gap(result[key], retrain[key])
        for key in (*HEADLINE, "mia_auc", "forget_test", "retain_test")
        if _both(key, result, retrain)
    }
    for key in ("bytes", "flops", "wall_seconds"):
        if _both(key, result, retrain) and retrain[key]:
            told[f"{key}_share"] = result[key] / retrain[key]
    return told


def distance(result: Mapping[str, Any], retrain: Mapping[str, Any]) -> float:
    """The headline: mean, in points, of |FA gap|, the shortfalls of RA and TA (being better than
    Retrain there is no loss), and |gap of the attack's balanced accuracy| where both are known."""
    lost = [
        METRICS[key].loss(result[key], retrain[key])
        for key in HEADLINE
        if _both(key, result, retrain)
    ]
    return sum(lost) / len(lost)


def best_stop(curve: Sequence[dict[str, Any]], retrain: Mapping[str, Any]) -> dict[str, Any] | None:
    """The round of a method's curve that is nearest to Retrain: the stop that somebody who knew
    Retrain would have chosen."""
    return min(curve, key=lambda point: distance(point, retrain)) if curve else None


def speeds(
    curve: Sequence[dict[str, Any]], retrain_fa: float | None, learned_fa: float | None = None
) -> dict[str, Any]:
    """T2F, recovery of RA, and the first round near Retrain's FA, as far as the curve tells."""
    forgotten = time_to_forget(curve, learned_fa)
    told: dict[str, Any] = {"t2f": forgotten, "recovery": recovery(curve)}
    if retrain_fa is not None:
        told["rounds_to_retrain"] = rounds_to_reach(curve, retrain_fa)
    return told


def _both(key: str, result: Mapping[str, Any], retrain: Mapping[str, Any]) -> bool:
    return result.get(key) is not None and retrain.get(key) is not None
