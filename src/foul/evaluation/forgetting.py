"""How well a model has forgotten: FA, RA, TA and a membership attack."""

from dataclasses import asdict, dataclass
from typing import Any

from foul.evaluation.accuracy import evaluate
from foul.evaluation.membership import loss_auc
from foul.federation.federation import Federation, RoundLog
from foul.federation.messages import Tensors
from foul.models import DEPLOYED, part_of
from foul.unlearning.request import ForgetRequest


@dataclass(frozen=True)
class Forgetting:
    """Fractions of 1. Members of the attack are the forget clients' training samples, the others
    their own test samples: the same domain, so that it is membership that is detected."""

    fa: float
    """Accuracy on the forget clients' training data."""
    ra: float
    """Accuracy on the retain clients' training data."""
    ta: float
    """Accuracy on the test sets of all domains."""
    forget_test: float
    retain_test: float
    mia_auc: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def assess(federation: Federation, tensors: Tensors, request: ForgetRequest) -> Forgetting:
    """Evaluate a model with respect to a request."""
    scores = evaluate(federation, tensors, splits=("train", "test"))
    forget = [client.id for client in request.forget if client.id in scores.clients]
    retain = [client.id for client in request.retain if client.id in scores.clients]

    def accuracy(split: str, clients: list[str]) -> float:
        total = scores.total(split, clients)
        return total.correct / max(1, total.samples)

    members, others = _losses(federation, tensors, request)
    return Forgetting(
        fa=accuracy("train", forget),
        ra=accuracy("train", retain),
        ta=accuracy("test", forget + retain),
        forget_test=accuracy("test", forget),
        retain_test=accuracy("test", retain),
        mia_auc=loss_auc(members, others),
    )


def _losses(
    federation: Federation, tensors: Tensors, request: ForgetRequest
) -> tuple[list[float], list[float]]:
    sent = {name: tensor for name, tensor in tensors.items() if part_of(name) in DEPLOYED}
    members: list[float] = []
    others: list[float] = []
    for reply in federation.ask(
        "membership",
        request.forget,
        sent,
        {"splits": ["train", "test"]},
        round=0,
        stage="evaluation",
        log=RoundLog(),
    ):
        members += reply.numbers["train"]
        others += reply.numbers["test"]
    return members, others
