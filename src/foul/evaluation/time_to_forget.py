"""How fast a method forgets and recovers, read off its curve (decision 14)."""

from collections.abc import Sequence
from typing import Any

Curve = Sequence[dict[str, Any]]
"""Points `{round, fa, ra, ...}` from round 0 on, in order."""

NEAR = 0.01
"""Within one point."""
_ROUNDING = 1e-9


def time_to_forget(curve: Curve, before: float | None = None) -> float | None:
    r"""T2F in points per round: :math:`100 (FA_0 - FA_{r^*}) / r^*`, where r* is the first round
    whose FA is within one point of the FA that the method ends at.

    :math:`FA_0` is the learned model's, `before`: a method may change the model before its first
    round (default: the curve's beginning). None without rounds or without their beginning; 0 if it
    ends where it began.
    """
    if not _whole(curve):
        return None
    first = curve[0]["fa"] if before is None else before
    end = curve[-1]["fa"]
    if abs(first - end) <= NEAR + _ROUNDING:
        return 0.0
    reached = next(p for p in curve[1:] if abs(p["fa"] - end) <= NEAR + _ROUNDING)
    return float(100 * (first - reached["fa"]) / reached["round"])


def rounds_to_reach(curve: Curve, accuracy: float) -> int | None:
    """The first round whose FA is within one point of `accuracy` (Retrain's), if there is one."""
    return next(
        (int(p["round"]) for p in curve if abs(p["fa"] - accuracy) <= NEAR + _ROUNDING), None
    )


def recovery(curve: Curve) -> float | None:
    """Points of RA per round regained from the lowest one to the end; 0 if the end is the lowest.

    None without rounds or without their beginning.
    """
    if not _whole(curve):
        return None
    lowest = min(curve, key=lambda point: point["ra"])
    rounds = curve[-1]["round"] - lowest["round"]
    return float(100 * (curve[-1]["ra"] - lowest["ra"]) / rounds) if rounds else 0.0


def _whole(curve: Curve) -> bool:
    """Whether it goes from the start to the end: tracked later, it lacks its first rounds."""
    return len(curve) > 1 and curve[0]["round"] == 0
