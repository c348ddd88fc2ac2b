"""What a linear probe still finds in an encoder: a classifier on its latents, fitted to the very
labels that were to be forgotten, or to the domains."""

from collections.abc import Sequence

import torch

from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import ClientInfo, Numbers, Tensors
from foul.models import deployed_state

RIDGE = 1e-3
"""Of the mean diagonal of the Gram matrix."""


def ridge(gram: torch.Tensor, cross: torch.Tensor) -> torch.Tensor:
    r"""The least-squares map :math:`(G + \rho I)^{-1} C`."""
    strength = RIDGE * float(gram.diagonal().mean())
    solved: torch.Tensor = torch.linalg.solve(
        gram + strength * torch.eye(len(gram), dtype=gram.dtype), cross
    )
    return solved.contiguous()


def _sums(sent: Tensors, settings: Numbers) -> Tensors:
    """What sums of the encoder's codes look like: a constant 1 is added to them."""
    classes, causal = sent["xi.weight"].shape
    codes = causal if settings["part"] == "K" else sent["head.weight"].shape[1] - causal
    told = len(settings.get("domains", ())) or classes
    empty = torch.empty(codes + 1, codes + 1, dtype=torch.float64)
    return {"gram": empty, "cross": empty.new_empty(codes + 1, told)}


def linear_probe(
    federation: Federation,
    tensors: Tensors,
    clients: Sequence[ClientInfo],
    part: str = "K",
    domains: bool = False,
) -> float | None:
    """Test accuracy of a probe fitted on these clients' training samples; None without any.

    It tells classes, or with `domains` the domain that a sample comes from. Fitted in one round
    from sums over samples, so no latent leaves its client.
    """
    sent = deployed_state(tensors)
    settings: Numbers = {"part": part, "split": "train"}
    if domains:
        settings["domains"] = sorted({client.domain for client in clients})
    sums: Tensors = {}
    fitted = 0
    for reply in federation.ask(
        "moments",
        clients,
        sent,
        settings,
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
        like=_sums(sent, settings),
    ):
        fitted += reply.numbers["samples"]
        for name, value in reply.tensors.items():
            sums[name] = sums[name] + value if name in sums else value
    if not fitted:
        return None
    correct = samples = 0
    for reply in federation.ask(
        "probed",
        clients,
        sent | {"probe": ridge(sums["gram"], sums["cross"])},
        settings | {"split": "test"},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        correct += reply.numbers["correct"]
        samples += reply.numbers["samples"]
    return correct / samples if samples else None
