"""Does the trigger still work? What only the forget clients have taught, a model that never saw
them cannot know."""

from foul.config.schema import BackdoorConfig
from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import Tensors
from foul.models import deployed_state


def backdoor_success(
    federation: Federation, tensors: Tensors, config: BackdoorConfig
) -> float | None:
    """Share of all clients' test images of other classes that are answered with the target when
    they carry the trigger; None without a backdoor or without such images.

    A model that does not know the trigger has its own share of errors towards the target, so the
    figure to compare with is Retrain's and not 0.
    """
    if not config.clients:
        return None
    sent = deployed_state(tensors)
    samples = fooled = 0
    for reply in federation.ask(
        "triggered",
        federation.clients,
        sent,
        {"target": config.target, "size": config.size},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        samples += reply.numbers["samples"]
        fooled += reply.numbers["fooled"]
    return fooled / samples if samples else None
