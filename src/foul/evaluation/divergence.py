"""How differently a model answers than Retrain does, wherever it is right."""

from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import Tensors, join_groups
from foul.models import deployed_state
from foul.unlearning.request import ForgetRequest


def divergence(
    federation: Federation, model: Tensors, reference: Tensors, request: ForgetRequest
) -> dict[str, float | None]:
    r"""Mean :math:`KL(p_{reference} \| p_{model})` per sample, in nats: on the forget clients'
    training data, on the retain clients', and on all test data; None without samples."""
    sums = dict.fromkeys(("forget", "retain", "test"), 0.0)
    counts = dict.fromkeys(sums, 0)
    forget = request.forget_ids
    for reply in federation.ask(
        "divergence",
        federation.clients,
        join_groups({"reference": deployed_state(reference), "model": deployed_state(model)}),
        {"splits": ["train", "test"]},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        for split, told in reply.numbers.items():
            kind = "test" if split == "test" else "forget" if reply.client in forget else "retain"
            sums[kind] += told["kl"]
            counts[kind] += told["samples"]
    return {kind: sums[kind] / counts[kind] if counts[kind] else None for kind in sums}
