"""The accuracy of a model that never saw a client, where others of its domain stay: measured on
held-out samples, and corrected for their number and for that of the training samples that stay."""

import math
from collections.abc import Mapping

from foul.unlearning.foul.counts import Counts


def pooled(domains: Mapping[str, Counts]) -> dict[str, float]:
    r"""Each domain's share of right answers, drawn towards the common mean as far as chance may
    have parted them:

    .. math:: \hat p_d = \frac{\tau^2 p_d + v_d \mu}{\tau^2 + v_d}

    with the variance :math:`v_d` of a share over so many samples and the variance
    :math:`\tau^2` between domains (random effects, after DerSimonian and Laird). Of a hundred
    held-out samples a share is off by three points; where all domains are alike, what the others
    answered says as much as they do.
    """
    known = {domain: counts for domain, counts in domains.items() if counts.samples}
    shares = {domain: counts.share for domain, counts in known.items()}
    noise = {domain: _variance(counts) for domain, counts in known.items()}
    spread = _between(shares, noise)
    weights = {domain: 1 / (spread + noise[domain]) for domain in known}
    mean = _mean(shares, weights)
    return {d: (spread * shares[d] + noise[d] * mean) / (spread + noise[d]) for d in known}


def _variance(counts: Counts) -> float:
    """Of a share, never 0: half an answer more on either side."""
    share = (counts.correct + 0.5) / (counts.samples + 1)
    return share * (1 - share) / counts.samples


def _between(shares: Mapping[str, float], noise: Mapping[str, float]) -> float:
    """The variance between domains beyond what their noise explains."""
    weights = {domain: 1 / noise[domain] for domain in shares}
    total, mean = sum(weights.values()), _mean(shares, weights)
    excess = sum(weights[d] * (shares[d] - mean) ** 2 for d in shares) - (len(shares) - 1)
    scale = total - sum(weight**2 for weight in weights.values()) / total
    return max(0.0, excess / scale) if len(shares) > 1 else 0.0


def _mean(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[d] * shares[d] for d in shares) / sum(weights.values())


def after_leaving(accuracy: float, kept: float, power: float) -> float:
    r"""The accuracy of a model that learned from a share `kept` of the domain's samples:
    :math:`1 - (1 - a) \, \text{kept}^{-\text{power}}`, at least 0. Errors fall with a power of the
    number of samples (Hestness et al., 2017), and the learned model had them all."""
    # So written that a power of 0 changes no bit.
    return max(0.0, accuracy - (1 - accuracy) * (math.pow(kept, -power) - 1))
