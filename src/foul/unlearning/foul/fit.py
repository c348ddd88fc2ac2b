"""How well the learned model has fitted the retain clients' data."""

import math
from collections.abc import Mapping

from foul.unlearning.foul.steering import weighted_mean
from foul.unlearning.request import ForgetRequest


def retain_loss(losses: Mapping[str, float], request: ForgetRequest, classes: int) -> float | None:
    """The learned model's mean loss on the retain clients' training samples, of what clients told;
    None if nobody did.

    No client can decide it for all: a loss counts as at least 0 and at most log(classes), that of
    who answers by chance.
    """
    known = [c for c in request.retain if math.isfinite(losses.get(c.id, math.nan))]
    if not known:
        return None
    chance = math.log(classes)
    return weighted_mean(
        [min(max(losses[client.id], 0.0), chance) for client in known],
        [client.samples.get("train", 0) for client in known],
    )
