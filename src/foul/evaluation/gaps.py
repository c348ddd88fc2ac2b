"""How far a method is from Retrain (decision 16)."""

from collections.abc import Mapping
from typing import Any


def gaps(result: Mapping[str, Any], retrain: Mapping[str, Any]) -> dict[str, float]:
    """Differences to Retrain in points (MIA AUC: of 1), and costs as fractions of Retrain's."""
    told = {
        f"{name}_gap": 100 * (result[name] - retrain[name])
        for name in ("fa", "ra", "ta")
        if name in result
    }
    if "mia_auc" in result:
        told["mia_auc_gap"] = result["mia_auc"] - retrain["mia_auc"]
    for name in ("bytes", "flops"):
        if retrain.get(name) and name in result:
            told[f"{name}_share"] = result[name] / retrain[name]
    return told


def distance(result: Mapping[str, Any], retrain: Mapping[str, Any]) -> float:
    """Mean, in points, of |FA gap| and the shortfalls of RA and TA: being better than Retrain on
    retained or test data is no loss."""
    told = gaps(result, retrain)
    return (abs(told["fa_gap"]) + max(0.0, -told["ra_gap"]) + max(0.0, -told["ta_gap"])) / 3


def best_stop(curve: list[dict[str, Any]], retrain: Mapping[str, Any]) -> dict[str, Any] | None:
    """The round of a method's curve that is nearest to Retrain: the stop that somebody who knew
    Retrain would have chosen."""
    return min(curve, key=lambda point: distance(point, retrain)) if curve else None
