"""How well a model has forgotten: accuracy, attacks, and what its encoders still tell."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foul.config.schema import BackdoorConfig
from foul.evaluation.accuracy import Accuracies, Score, evaluate
from foul.evaluation.attacks import AttackResult, run_attacks
from foul.evaluation.backdoor import backdoor_success
from foul.evaluation.probe import linear_probe
from foul.federation.federation import EVALUATION, Federation, QuorumError, RoundLog
from foul.federation.messages import Tensors
from foul.models import deployed_state
from foul.unlearning.request import ForgetRequest

SPLITS = ("train", "test")
"""Forget clients' validation samples may have steered a method: they never judge it."""

Logits = NDArray[np.float64]
"""Aligned logits `[N, C]`, as the task `outputs` sends them."""


def accuracies(
    federation: Federation, tensors: Tensors, request: ForgetRequest
) -> dict[str, float | None]:
    """FA, RA and TA of a model, and its test accuracy on either side; None without samples."""
    return _accuracies(evaluate(federation, tensors, splits=SPLITS), request)


def _accuracies(scores: Accuracies, request: ForgetRequest) -> dict[str, float | None]:
    forget = [client.id for client in request.forget if client.id in scores.clients]
    retain = [client.id for client in request.retain if client.id in scores.clients]

    def accuracy(split: str, clients: list[str]) -> float | None:
        total = scores.total(split, clients)
        return total.correct / total.samples if total.samples else None

    for role, answered in {"forget": forget, "retain": retain}.items():
        # Every client has training samples, so that curves are without holes.
        if not answered:
            why = "; ".join(f"{client}: {why}" for client, why in sorted(scores.missing.items()))
            raise QuorumError(
                f"No {role} client told how well the model does ({why})",
                "Ask again when they are back: the model itself is kept.",
            )
    return {
        "fa": accuracy("train", forget),
        "ra": accuracy("train", retain),
        "ta": accuracy("test", forget + retain),
        "forget_test": accuracy("test", forget),
        "retain_test": accuracy("test", retain),
    }


@dataclass(frozen=True)
class Forgetting:
    """What was measured of one model with respect to one request."""

    accuracies: dict[str, float | None]
    """FA, RA, TA and test accuracy on either side, as fractions."""
    scores: Accuracies
    attacks: dict[str, AttackResult]
    """Membership attacks by name; none if the forget clients have no test samples."""
    probes: dict[str, dict[str, float | None]]
    """Encoder -> what a linear probe tells from its latents -> test accuracy."""
    backdoor: float | None = None
    """Share of images with the trigger that are answered as it wants; None without a trigger."""

    def summary(self) -> dict[str, Any]:
        """The figures of `results.json`; the attack is the loss threshold."""
        loss = self.attacks.get("loss")
        return {
            **self.accuracies,
            "mia_auc": loss and loss.auc,
            "mia_low": loss and loss.auc_low,
            "mia_high": loss and loss.auc_high,
            "mia_accuracy": loss and loss.accuracy,
            "mia_tpr_1": loss and loss.tpr_1,
            "k_probe": self.probes["K"]["labels"],
            "v_probe": self.probes["V"]["labels"],
            "backdoor": self.backdoor,
        }

    def detail(self) -> dict[str, Any]:
        """Everything, JSON-like."""
        return {
            "accuracy": {
                "clients": {
                    client: {split: score.to_dict() for split, score in splits.items()}
                    for client, splits in self.scores.clients.items()
                },
                "domains": {
                    domain: {
                        # Nobody of a domain may have answered.
                        split: self.scores.by_domain(split).get(domain, Score()).to_dict()
                        for split in SPLITS
                    }
                    for domain in sorted(set(self.scores.domains.values()))
                },
            },
            "attacks": {name: attack.to_dict() for name, attack in self.attacks.items()},
            "probes": self.probes,
            "backdoor": None if self.backdoor is None else {"success": self.backdoor},
        }


def assess(
    federation: Federation,
    tensors: Tensors,
    request: ForgetRequest,
    backdoor: BackdoorConfig | None = None,
) -> Forgetting:
    """Evaluate a model with respect to a request.

    Members of the attacks are the forget clients' training samples, the others their own test
    samples: the same domain, so that it is membership that is detected (decision 15).
    """
    scores = evaluate(federation, tensors, splits=SPLITS)
    members, others = forget_outputs(federation, tensors, request)
    attacked = len(members) and len(others)
    return Forgetting(
        _accuracies(scores, request),
        scores,
        run_attacks(members, others, federation.seed) if attacked else {},
        {
            part: {
                "labels": linear_probe(federation, tensors, request.forget, part),
                "domain": linear_probe(federation, tensors, federation.clients, part, domains=True),
            }
            for part in ("K", "V")
        },
        backdoor_success(federation, tensors, backdoor) if backdoor else None,
    )


def forget_outputs(
    federation: Federation, tensors: Tensors, request: ForgetRequest
) -> tuple[Logits, Logits]:
    """Aligned logits of the forget clients' training and test samples."""
    found: dict[str, list[Logits]] = {split: [] for split in SPLITS}
    for reply in federation.ask(
        "outputs",
        request.forget,
        deployed_state(tensors),
        {"splits": list(SPLITS)},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        for split in SPLITS:
            found[split].append(reply.tensors[split].double().numpy())
    train, test = (np.concatenate(found[split]) for split in SPLITS)
    return train, test
