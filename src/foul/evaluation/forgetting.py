"""How well a model has forgotten: FA, RA, TA and a membership attack."""

from dataclasses import asdict, dataclass
from typing import Any

from foul.evaluation.accuracy import evaluate
from foul.evaluation.membership import auc_interval, loss_auc
from foul.evaluation.probe import linear_probe
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
    mia_low: float
    mia_high: float
    """The 95 % interval of the attack's AUC."""
    k_probe: float | None
    """Test accuracy of a linear probe on z_K, fitted to the forget clients' labels."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def accuracies(
    federation: Federation, tensors: Tensors, request: ForgetRequest
) -> dict[str, float]:
    """FA, RA and TA of a model, and its test accuracy on either side."""
    scores = evaluate(federation, tensors, splits=("train", "test"))
    forget = [client.id for client in request.forget if client.id in scores.clients]
    retain = [client.id for client in request.retain if client.id in scores.clients]

    def accuracy(split: str, clients: list[str]) -> float:
        total = scores.total(split, clients)
        return total.correct / max(1, total.samples)

    return {
        "fa": accuracy("train", forget),
        "ra": accuracy("train", retain),
        "ta": accuracy("test", forget + retain),
        "forget_test": accuracy("test", forget),
        "retain_test": accuracy("test", retain),
    }


def assess(federation: Federation, tensors: Tensors, request: ForgetRequest) -> Forgetting:
    """Evaluate a model with respect to a request."""
    members, others = _losses(federation, tensors, request)
    auc = loss_auc(members, others)
    low, high = auc_interval(auc, len(members), len(others))
    return Forgetting(
        **accuracies(federation, tensors, request),
        mia_auc=auc,
        mia_low=low,
        mia_high=high,
        k_probe=linear_probe(federation, tensors, request.forget, "K"),
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
