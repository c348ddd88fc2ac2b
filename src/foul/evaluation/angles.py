"""The angle between the server's step and where each client would go (the paper's figures b)."""

from collections.abc import Collection

from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import Tensors, join_groups
from foul.models import deployed_state
from foul.unlearning.request import ForgetRequest

SAMPLES = 32
"""Training samples from which a client tells its direction."""


def step_angles(
    federation: Federation,
    before: Tensors,
    after: Tensors,
    request: ForgetRequest,
    buffers: Collection[str],
    round: int,
) -> dict[str, float | None]:
    r"""Mean cosine of :math:`\theta_{after} - \theta_{before}` and the clients' cross-entropy steps
    at :math:`\theta_{before}`, over the parameters that changed: retain and forget clients apart.

    A forget client's direction is its cross-entropy step, whatever loss it descended: a negative
    cosine says that the step conflicts with what the client would learn. None if nothing changed.
    """
    start = deployed_state(before)
    step = {
        name: after[name] - tensor
        for name, tensor in start.items()
        if name not in buffers and not bool((after[name] == tensor).all())
    }
    if not step:
        return {"angle_retain": None, "angle_forget": None}
    cosines: dict[bool, list[float]] = {True: [], False: []}
    for reply in federation.ask(
        "angle",
        federation.clients,
        join_groups({"model": start, "step": step}),
        {"samples": SAMPLES},
        round=round,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        if reply.numbers["cosine"] is not None:
            cosines[reply.client in request.forget_ids].append(reply.numbers["cosine"])
    return {
        "angle_retain": _mean(cosines[False]),
        "angle_forget": _mean(cosines[True]),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
