"""Membership attacks by name: scores for both groups, and how well they tell them apart."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from foul.errors import UserError
from foul.evaluation.attacks.fitted import FITTED
from foul.evaluation.attacks.roc import (
    auc,
    bootstrap,
    fitted_hits,
    mean_hit,
    roc_points,
    thinned,
    tpr_at,
)
from foul.evaluation.attacks.statistics import STATISTICS, Matrix, Vector
from foul.names import hint
from foul.seeds import numpy_generator

ATTACKS: tuple[str, ...] = (
    "loss",
    "confidence",
    "entropy",
    "modified_entropy",
    "logistic",
    "svm",
)
"""Those run by default. `loss` and `confidence` rank alike (up to probabilities that round to 1),
so their AUCs are the same; both stay because papers report either. `margin` is known by name too.
"""

ROC_POINTS = 200
OTHERS_FOR_TPR_01 = 1000
"""With fewer, an FPR of 0.1 % is less than one sample."""


@dataclass(frozen=True)
class AttackResult:
    """How well an attack tells members from others: fractions of 1, with 95 % intervals."""

    auc: float
    auc_low: float
    auc_high: float
    accuracy: float
    """Balanced; at a threshold fitted to other samples."""
    accuracy_low: float
    accuracy_high: float
    tpr_1: float
    """TPR at 1 % FPR."""
    tpr_1_low: float
    tpr_1_high: float
    tpr_01: float | None
    """TPR at 0.1 % FPR; None with fewer than 1,000 others."""
    members: int
    others: int
    roc: list[list[float]]
    """[FPR, TPR] of at most 200 points."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_attacks(
    members: Matrix, others: Matrix, seed: int, attacks: Sequence[str] = ATTACKS
) -> dict[str, AttackResult]:
    """Attack aligned logits. Each attack has its own random stream, so its result depends neither
    on which others are run nor on their order."""
    for name in attacks:
        _check_name(name)
    results = {}
    for name in attacks:
        rng = numpy_generator(seed, f"attack/{name}")
        results[name] = judge(*attack_scores(name, members, others, rng), rng)
    return results


def attack_scores(
    name: str, members: Matrix, others: Matrix, rng: np.random.Generator
) -> tuple[Vector, Vector]:
    """The scores an attack gives to members and others, larger for a likelier member.

    Raises:
        UserError: there is no attack of this name.
        ValueError: the logits are not two finite matrices with the same number of classes.
    """
    _check_name(name)
    if np.ndim(members) != 2 or np.shape(members)[1:] != np.shape(others)[1:]:
        shapes = f"{np.shape(members)} and {np.shape(others)}"
        raise ValueError(f"aligned logits have shapes [members, C] and [others, C], not {shapes}")
    if not (np.isfinite(members).all() and np.isfinite(others).all()):
        raise ValueError("aligned logits must be finite; some are NaN or infinite")
    if name in FITTED:
        return FITTED[name](members, others, rng)
    return STATISTICS[name](members), STATISTICS[name](others)


def judge(
    scores_members: ArrayLike, scores_others: ArrayLike, rng: np.random.Generator
) -> AttackResult:
    """What scores of any attack achieve, LiRA's included."""
    groups = (scores_members, scores_others)
    hits = fitted_hits(*groups, rng)
    intervals = bootstrap(*groups, rng, hits=hits)
    members, others = len(hits[0]), len(hits[1])
    return AttackResult(
        auc=auc(*groups),
        auc_low=intervals["auc"][0],
        auc_high=intervals["auc"][1],
        accuracy=mean_hit(hits),
        accuracy_low=intervals["accuracy"][0],
        accuracy_high=intervals["accuracy"][1],
        tpr_1=tpr_at(0.01, *groups),
        tpr_1_low=intervals["tpr_1"][0],
        tpr_1_high=intervals["tpr_1"][1],
        tpr_01=tpr_at(0.001, *groups) if others >= OTHERS_FOR_TPR_01 else None,
        members=members,
        others=others,
        roc=np.column_stack(thinned(*roc_points(*groups), ROC_POINTS)).tolist(),
    )


def _check_name(name: str) -> None:
    if name not in STATISTICS and name not in FITTED:
        raise UserError(f"There is no attack '{name}'", hint(name, [*STATISTICS, *FITTED]))
