"""Membership-inference attacks on aligned logits: pure functions, no model, no files."""

from foul.evaluation.attacks.attack import (
    ATTACKS,
    AttackResult,
    attack_scores,
    judge,
    run_attacks,
)
from foul.evaluation.attacks.lira import lira_scores
from foul.evaluation.attacks.roc import (
    auc,
    balanced_accuracy,
    bootstrap,
    roc_points,
    thinned,
    tpr_at,
)
from foul.evaluation.attacks.statistics import STATISTICS

__all__ = [
    "ATTACKS",
    "STATISTICS",
    "AttackResult",
    "attack_scores",
    "auc",
    "balanced_accuracy",
    "bootstrap",
    "judge",
    "lira_scores",
    "roc_points",
    "run_attacks",
    "thinned",
    "tpr_at",
]
