"""What the model in service can do."""

from collections.abc import Sequence

from foul.evaluation.accuracy import evaluate
from foul.federation.build import Setting
from foul.federation.messages import ClientInfo, Tensors
from foul.runs.folder import RunFolder


def summarise(
    folder: RunFolder, setting: Setting, tensors: Tensors, clients: Sequence[ClientInfo]
) -> None:
    """Write what the model in service can do now; what learning took stays."""
    found = evaluate(setting.federation, tensors, clients=clients)
    told = {"accuracy": found.to_dict(), "not_evaluated": found.missing}
    folder.write_summary(folder.summary() | told)
