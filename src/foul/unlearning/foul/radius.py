"""How far to go from the centre of the ball: read off what the forget clients tried."""

from collections.abc import Sequence
from dataclasses import dataclass

from foul.unlearning.foul.counts import Counts

POINTS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of kappa that forget clients try: first rounds may need all of it, last ones a trace."""


@dataclass(frozen=True)
class Trial:
    """What one forget client tried."""

    tried: Sequence[Counts]
    """Its answers at each of the points, on some of its samples."""
    centre: Counts
    """Its answers at the first of them, on all samples; on the same ones if that is unknown."""


def accuracies(trials: Sequence[Trial]) -> list[float]:
    r"""Forget accuracy at each of the points, over all samples of those who tried them.

    Which samples were tried is chance, but the same at every point: if they are answered better at
    the centre than all samples are, so they will be a step away from it. With :math:`p_u(x)` the
    share of right answers of those that client u tried and :math:`a_u` that of all its
    :math:`n_u` samples at the centre:

    .. math:: \sum_u n_u (p_u(x) + a_u - p_u(0)) / \sum_u n_u
    """
    samples = max(1, sum(trial.centre.samples for trial in trials))
    places = range(max((len(trial.tried) for trial in trials), default=0))
    right = (sum(_right(trial, place) for trial in trials) for place in places)
    return [min(1.0, max(0.0, count / samples)) for count in right]


def _right(trial: Trial, place: int) -> float:
    """How many of all samples would be answered right at a point."""
    fewer = trial.tried[0].correct - trial.tried[place].correct
    return trial.centre.correct - fewer * trial.centre.samples / max(1, trial.tried[0].samples)


def choose_radius(
    points: Sequence[float], accuracies: Sequence[float], aim: float, flat: bool = False
) -> tuple[float, float]:
    """The smallest share of the radius at which forget accuracy falls to `aim`, and the accuracy
    expected there, by linear interpolation between the points that were tried.

    Already at or below `aim` without any radius: 0. Nowhere low enough: the point of least
    accuracy, the nearest of several; the farthest if the loss is known to be flat, where labels are
    so sure that accuracy does not show what a step has done.
    """
    if accuracies[0] <= aim:
        return points[0], accuracies[0]
    for place in range(1, len(points)):
        before, after = accuracies[place - 1], accuracies[place]
        if after <= aim:
            share = (before - aim) / (before - after)
            return points[place - 1] + share * (points[place] - points[place - 1]), aim
    places = range(len(points))
    least = min(reversed(places) if flat else places, key=lambda place: accuracies[place])
    return points[least], accuracies[least]


def is_flat(accuracies: Sequence[float], aim: float, least: float) -> bool:
    """Whether forget accuracy is above `aim` and no radius lowers it by at least `least`."""
    return accuracies[0] > aim and accuracies[0] - min(accuracies) < least


def aim_for(before: float, target: float, round: int, ramp: int) -> float:
    """Forget accuracy to aim for in this round (from 1): down to the target in equal steps."""
    if ramp <= 0:
        return target
    return target + (before - target) * max(0.0, 1 - round / ramp)
