"""How well the learned model has fitted the retain clients' data."""

import math
from collections.abc import Mapping

from foul.unlearning.foul.options import Fit, FoulOptions
from foul.unlearning.foul.steering import weighted_mean
from foul.unlearning.method import LearnedScores
from foul.unlearning.request import ForgetRequest


def fit_of(
    options: FoulOptions, scores: LearnedScores, request: ForgetRequest, classes: int
) -> Fit:
    """What the retain clients told of the learned model says.

    No client can decide it for all: a loss counts as at least 0 and at most log(classes), that of
    who answers by chance.
    """
    loss = retain_mean(scores.losses, request, 0.0, math.log(classes))
    return options.fit(loss, retain_mean(scores.gaps, request, -1.0, 1.0))


def retain_mean(
    told: Mapping[str, float], request: ForgetRequest, least: float, most: float
) -> float | None:
    """The mean over the retain clients' training samples of what they told, each within bounds;
    None if nobody did."""
    known = [c for c in request.retain if math.isfinite(told.get(c.id, math.nan))]
    if not known:
        return None
    return weighted_mean(
        [min(max(told[client.id], least), most) for client in known],
        [client.samples.get("train", 0) for client in known],
    )
