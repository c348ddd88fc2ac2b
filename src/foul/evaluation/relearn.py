"""Relearn time: how soon a model knows the forget clients again once they rejoin."""

from dataclasses import dataclass

from foul.config.schema import LearningConfig
from foul.evaluation.accuracy import evaluate
from foul.evaluation.time_to_forget import NEAR
from foul.federation.federation import Federation
from foul.federation.messages import Tensors
from foul.federation.observer import Observer
from foul.learning.going_on import going_on
from foul.learning.rounds import LearningState, learning_round
from foul.unlearning.request import ForgetRequest

STAGE = "relearn"
"""Its own line of the ledger: no method pays for being examined."""


@dataclass(frozen=True)
class Relearned:
    """How a model came to know the forget clients again. Fractions of 1."""

    rounds: int | None
    """Rounds until FA was back; None if it was not within the limit."""
    curve: list[float]
    """FA before the first round and after each."""
    target: float
    """The learned model's FA."""


def relearn(
    federation: Federation,
    tensors: Tensors,
    config: LearningConfig,
    request: ForgetRequest,
    buffers: frozenset[str],
    target: float,
    limit: int = 10,
    observer: Observer | None = None,
) -> Relearned:
    """Learn with all clients from this model on until FA is within a point of `target`.

    A model that has forgotten takes about as many rounds as Retrain's; one that only hides what
    it knows takes fewer. Rounds are those of the learning stage, gentle enough to be counted.
    What they cost is the stage `relearn` of the ledger; `tensors` stay as they are.
    """
    observer = observer or Observer()
    gentle = going_on(config, limit)
    state = LearningState(dict(tensors))
    curve = [_forget_accuracy(federation, state.tensors, request)]
    observer.on_stage(STAGE, limit, 0)
    while not _back(curve[-1], target) and state.round < limit:
        record = learning_round(federation, gentle, state, federation.clients, buffers, STAGE)
        curve.append(_forget_accuracy(federation, state.tensors, request))
        observer.on_round({**record, "fa": curve[-1]})
    return Relearned(state.round if _back(curve[-1], target) else None, curve, target)


def _back(fa: float, target: float) -> bool:
    # 0.07 - 0.01 is a little more than 0.06 in floating point; 6 % are near enough.
    return fa >= target - NEAR - 1e-9


def _forget_accuracy(federation: Federation, tensors: Tensors, request: ForgetRequest) -> float:
    """FA: accuracy on the forget clients' training data."""
    total = evaluate(federation, tensors, splits=("train",), clients=request.forget).total("train")
    return total.correct / max(1, total.samples)
