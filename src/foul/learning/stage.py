"""The learning stage as a run: folder, checkpoints, resume, summary."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from foul.config.schema import Config, FlowerConfig
from foul.errors import UserError
from foul.evaluation.accuracy import evaluate
from foul.federation.build import Setting, build
from foul.federation.federation import Federation, QuorumError
from foul.federation.ledger import Ledger
from foul.federation.messages import Tensors, join_groups, take_group
from foul.federation.observer import Observer
from foul.learning.history import History
from foul.learning.rounds import LearningState, learning_rounds
from foul.runs.folder import RunFolder

_FREE_TO_CHANGE = frozenset(
    {
        "device",
        "workers",
        "tensorboard",
        "engine",
        *(f"flower.{name}" for name in FlowerConfig.model_fields),
        "federation.quorum",
        "federation.checkpoint_every",
        "federation.keep_checkpoints",
    }
)
"""What a resumed run may change: where it runs and what it keeps, not what it computes."""


def learn(
    config: Config | None,
    out: str | Path,
    *,
    resume: bool = False,
    observer: Observer | None = None,
    command: str = "",
) -> RunFolder:
    """Train until the patience rule or the last round; ends with `models/learned.safetensors`.

    Args:
        config: what to do; may be None to resume with the folder's own configuration.
        out: the run folder.
        resume: continue the run in `out`. Killed at any moment, a run that is resumed ends with
            the same bits as one that was left alone.
        observer: gets every round as it ends.
        command: the command line to note in the run folder.

    Raises:
        UserError: the folder, the configuration or the data cannot be used as asked.
        QuorumError: too few clients answered; the state is saved.
    """
    observer = observer or Observer()
    path = Path(out)
    if resume:
        folder = RunFolder.open(path)
        config = _same(folder, config)
        if folder.learned():
            observer.on_message(f"{path} has learned already; nothing to do")
            return folder
    elif config is None:
        raise UserError("No configuration given", "Name one, or continue a run with --resume.")
    else:
        RunFolder.require_free(path)
    erased = folder.erased() if resume else ()
    known = folder.clients() if resume else ()
    setting = build(config, observer, without=erased, known=known)
    try:
        facts = setting.facts()
        if resume:
            folder.require_same_data(facts)
        else:
            # Built first: bad data must not leave a run folder behind.
            folder = RunFolder.create(path, config, {"command": command, **facts})
        with folder.lock():
            _run(folder, config, setting, observer)
    finally:
        setting.federation.engine.close()
    return folder


def _run(folder: RunFolder, config: Config, setting: Setting, observer: Observer) -> None:
    federation, learning = setting.federation, config.learning
    history = _history(config, setting)
    state, ledger = _restore(folder, setting, history)
    federation.ledger = ledger
    recorded = state.round
    observer.on_stage("learning", learning.rounds, state.round)
    try:
        for record in learning_rounds(
            federation,
            learning,
            state,
            federation.clients,
            setting.buffers,
            keep=_keeper(folder, config, history),
        ):
            if history:
                history.end_round()
            if learning.evaluate_every and state.round % learning.evaluate_every == 0:
                record["test"] = _test_scores(federation, state)
            folder.append(record)
            recorded = state.round
            if state.finished(learning) or state.round % config.federation.checkpoint_every == 0:
                _save(folder, config, state, ledger, history)
            observer.on_round(record)
    except QuorumError:
        # The round that failed changed nothing but the costs.
        if state.round == recorded:
            _save(folder, config, state, ledger, history)
        raise
    if history:
        folder.save_history(*history.state())
    _finish(folder, setting, state)


def _history(config: Config, setting: Setting) -> History | None:
    kind = config.federation.history
    if kind == "none":
        return None
    return History.of(kind, setting.federation.clients, setting.buffers)


def _keeper(
    folder: RunFolder, config: Config, history: History | None
) -> Callable[[str, Tensors], None] | None:
    """What to do with each client's update, if anything."""
    keepers: list[Callable[[str, Tensors], None]] = []
    if config.federation.keep_deltas:
        keepers.append(folder.save_delta)
    if history:
        keepers.append(history.add)

    def keep(client: str, delta: Tensors) -> None:
        for keeper in keepers:
            keeper(client, delta)

    return keep if keepers else None


def _test_scores(federation: Federation, state: LearningState) -> dict[str, Any]:
    scores = evaluate(federation, state.tensors, round=state.round, splits=("test",))
    return {domain: score.to_dict() for domain, score in scores.by_domain("test").items()}


def _finish(folder: RunFolder, setting: Setting, state: LearningState) -> None:
    """Evaluate the learned model, store it, and say what it took."""
    federation = setting.federation
    accuracies = evaluate(federation, state.tensors, round=state.round)
    folder.save_model(
        "learned", state.tensors, {"round": state.round, "classes": list(setting.classes)}
    )
    folder.write_summary(
        {
            "stage": "learned",
            "rounds": state.round,
            "best_round": state.best_round,
            "accuracy": accuracies.to_dict(),
            "not_evaluated": accuracies.missing,
            "costs": federation.ledger.to_dict(),
            "wall_seconds": sum(record["seconds"] for record in folder.records()),
            "disk_bytes": folder.disk_bytes(),
        }
    )


def _save(
    folder: RunFolder,
    config: Config,
    state: LearningState,
    ledger: Ledger,
    history: History | None,
) -> None:
    groups = {"model": state.tensors, "velocity": state.velocity}
    numbers = {**state.numbers(), "seed": config.seed, "ledger": ledger.to_dict()}
    if history:
        groups["history"], numbers["history"] = history.state()
    folder.save_checkpoint(
        state.round, join_groups(groups), numbers, config.federation.keep_checkpoints
    )


def _restore(
    folder: RunFolder, setting: Setting, history: History | None
) -> tuple[LearningState, Ledger]:
    """The state of the newest checkpoint, or the beginning."""
    saved = folder.last_checkpoint()
    if saved is None:
        folder.rewind(0)
        return LearningState(dict(setting.initial)), Ledger()
    tensors, numbers = saved
    state = LearningState(
        take_group(tensors, "model"),
        take_group(tensors, "velocity"),
        numbers["round"],
        numbers["best"],
        numbers["best_round"],
    )
    if history:
        history.restore(take_group(tensors, "history"), numbers["history"])
    folder.rewind(state.round)
    return state, Ledger(numbers["ledger"])


def _same(folder: RunFolder, config: Config | None) -> Config:
    """The configuration to go on with; it may differ from the folder's only where that is free."""
    own = folder.config()
    if config is None:
        return own
    different = [
        key
        for key in _differences(own.model_dump(), config.model_dump())
        if key not in _FREE_TO_CHANGE
    ]
    if different:
        raise UserError(
            f"{folder.path} was started with another configuration ({', '.join(different)} differ)",
            "Resume without a configuration, or start a new run with another --out.",
        )
    return config


def _differences(one: dict[str, Any], other: dict[str, Any], prefix: str = "") -> list[str]:
    keys = []
    for key, value in one.items():
        if isinstance(value, dict):
            keys += _differences(value, other[key], f"{prefix}{key}.")
        elif value != other[key]:
            keys.append(prefix + key)
    return keys
