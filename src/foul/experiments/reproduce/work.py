"""How much work a trial is, counted in rounds of its learning stage."""

from collections.abc import Sequence

from foul.experiments.reproduce.plan import Trial, Variant
from foul.unlearning.foul import Foul
from foul.unlearning.methods import METHODS, make_method

_CHEAP = {"foul": 0.5, "fused": 0.6, "fats": 0.6, "fats-learning": 0.5}
"""Shares of a learning round, by stage: FOUL works on cached outputs of the frozen parts (a third
of a round, the rest is tracking), adapters and thin rounds train less."""
_USUAL = 1.0
"""Retain clients are three of four, and the model is measured after every round."""
_JUDGED = 1.0
"""Attacks and probes on the final model take about as long as a round."""


def round_work(stage: str) -> float:
    """A round of this stage."""
    return _CHEAP.get(stage, _USUAL)


Branches = Sequence[tuple[str, Variant]]
"""Requests and who serves them."""


def branches(trial: Trial) -> Branches:
    """Every request with every variant."""
    return [(request, variant) for request in trial.forget for variant in trial.variants]


def learning_work(trial: Trial) -> float:
    """Rounds of learning."""
    return float(trial.config.learning.rounds)


def branch_work(trial: Trial, left: Branches | None = None) -> float:
    """Everything that branches from the learned model, or what is left of it."""
    learned = trial.config.learning.rounds
    left = branches(trial) if left is None else left
    own = sum(
        learned * round_work(stage) for stage in {_own_stage(variant) for _, variant in left} - {""}
    )
    return own + sum(_rounds(variant, learned) + _JUDGED for _, variant in left)


def _rounds(variant: Variant, learned: int) -> float:
    """Rounds of a method, in rounds of learning."""
    method = make_method(variant.method, variant.options)
    rounds = getattr(method.options, "rounds", None)
    if isinstance(method, Foul):
        # What is fitted is not known before it starts.
        rounds = method.options.planned("fitted", learned)
    if rounds is None:
        # Those that roll back repeat most of what was learned; others need no round.
        rounds = learned if method.name == "fats" else 0
    return round_work(method.name) * (rounds or (learned if method.name == "retrain" else 0))


def _own_stage(variant: Variant) -> str:
    """The learning stage of a method that has its own; methods that learn alike share it."""
    if not METHODS[variant.method].method.requirements.own_learning:
        return ""
    learning = make_method(variant.method, variant.options).learning()
    return learning.name if learning else ""
