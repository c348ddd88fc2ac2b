"""The case of a run: a request, the learned model, and what the run kept for the method."""

from foul.config.schema import Config
from foul.errors import UserError
from foul.federation.build import Setting
from foul.federation.messages import Tensors
from foul.learning.history import residuals
from foul.runs.folder import RunFolder
from foul.unlearning.method import Case, LearnedScores
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import Requirements


def case_of(
    folder: RunFolder,
    config: Config,
    setting: Setting,
    request: ForgetRequest,
    needs: Requirements,
    method: str,
) -> Case:
    """The request for the run's learned model, with what the run kept for this method."""
    learned, facts = folder.load_model("learned")
    return Case(
        setting.federation,
        config,
        request,
        learned,
        facts["round"],
        setting.initial,
        setting.buffers,
        len(setting.classes),
        setting.image_size,
        _stored_deltas(folder, request) if needs.stored_deltas else {},
        _history(folder, method) if needs.history else None,
        learned_scores(folder),
    )


def learned_scores(folder: RunFolder) -> LearnedScores:
    """How the learned model does on each client's data, as its run evaluated it."""
    accuracy = folder.summary().get("accuracy", {})
    train, held_out = (
        {
            client: told
            for client, told in accuracy.get(split, {}).get("clients", {}).items()
            if told["loss"] is not None
        }
        for split in ("train", "validation")
    )
    return LearnedScores(
        {client: told["loss"] for client, told in train.items()},
        {
            client: train[client]["accuracy"] - told["accuracy"]
            for client, told in held_out.items()
            if client in train
        },
        {client: told["accuracy"] for client, told in held_out.items()},
    )


def _stored_deltas(folder: RunFolder, request: ForgetRequest) -> dict[str, Tensors]:
    """What the run kept of the forget clients.

    Raises:
        UserError: it kept nothing of one of them.
    """
    kept = {client.id: folder.load_delta(client.id) for client in request.forget}
    missing = sorted(client for client, delta in kept.items() if delta is None)
    if missing:
        raise UserError(
            f"departed=true needs the last updates of {', '.join(missing)}, "
            f"which {folder.path} did not keep",
            "Learn with federation.keep_deltas=true, or ask the clients themselves "
            "(departed=false).",
        )
    return {client: delta for client, delta in kept.items() if delta is not None}


def _history(folder: RunFolder, method: str) -> tuple[dict[str, Tensors], float]:
    """What the run added up of its groups of clients.

    Raises:
        UserError: it added up nothing.
    """
    kept = folder.load_history()
    if kept is None:
        raise UserError(
            f"'{method}' needs what each group of clients contributed, which {folder.path} did not "
            "add up",
            "Learn with federation.history=domains (or clients), or choose another method.",
        )
    tensors, numbers = kept
    return residuals(tensors, numbers), numbers["weight"]
