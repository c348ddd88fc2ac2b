"""The unlearning stage as part of a run: checked first, resumed where it stopped, evaluated."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foul.errors import UserError
from foul.evaluation.forgetting import assess
from foul.federation.build import Setting, build
from foul.federation.federation import QuorumError
from foul.federation.ledger import Ledger
from foul.federation.observer import Observer
from foul.names import slug
from foul.runs.atomic import write_text
from foul.runs.checkpoint import join_groups, load_tensors, save_tensors, take_group
from foul.runs.folder import RunFolder
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.methods import METHODS, make_method
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import check


def unlearn(
    run: str | Path,
    forget: str,
    method: str = "foul",
    overrides: Iterable[str] = (),
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Make a run's learned model forget; the learned model itself stays as it is.

    The unlearned model becomes `models/METHOD-FORGET.safetensors`, the figures are added to
    `results.json`. Interrupted, the same call continues where it stopped.

    Args:
        run: a run folder whose learning stage is complete.
        forget: `domain:NAME` or `client:ID`, several separated by commas.
        method: a name of `foul methods`.
        overrides: options of the method, as `key=value`.

    Returns:
        The figures, as in `results.json`.

    Raises:
        UserError: the request, the method or the run cannot be used as asked.
        QuorumError: too few clients answered; complete rounds are saved.
    """
    observer = observer or Observer()
    folder = RunFolder.open(Path(run))
    config, chosen = folder.config(), make_method(method, overrides)
    learned, facts = folder.load_model("learned")
    others = [name for name, entry in METHODS.items() if not entry.method.requirements.l2u]
    check(method, chosen.requirements, config.learning.objective, config.model.head, others)
    setting = build(config, observer, features=folder.path / "features")
    try:
        request = ForgetRequest.parse(forget, setting.federation.clients)
        case = Case(
            setting.federation,
            config,
            request,
            learned,
            facts["round"],
            setting.initial,
            setting.buffers,
        )
        with folder.lock():
            return _run(folder, setting, case, chosen, method, observer)
    except QuorumError as error:
        raise QuorumError(
            error.what,
            "Ask once more when they are back, or choose a method that does not need them "
            "(`foul methods`).",
        ) from error
    finally:
        setting.federation.engine.close()


def _run(
    folder: RunFolder,
    setting: Setting,
    case: Case,
    method: Method[Any],
    name: str,
    observer: Observer,
) -> dict[str, Any]:
    label = f"{name}-{slug(case.request.text)}"
    file = folder.path / "unlearning" / f"{label}.safetensors"
    file.parent.mkdir(exist_ok=True)
    identity = _identity(case, method, name)
    state, records = _restore(file, identity, setting)
    if state is None:
        state, records = method.start(case), []
    limit = getattr(method.options, "rounds", 0) or case.learned_rounds
    observer.on_stage(method.name, limit, state.round)
    while not state.finished:
        record = {"stage": method.name, "round": state.round + 1, **method.step(case, state)}
        records.append(record)
        _save(file, identity, state, records, setting.federation.ledger)
        observer.on_round(record)
    path = folder.save_model(label, state.tensors, {"round": state.round, "forget": label})
    cost = setting.federation.ledger.total(method.name)
    result = {
        "method": name,
        "forget": case.request.text,
        **assess(setting.federation, state.tensors, case.request).to_dict(),
        "rounds": state.round,
        "bytes": cost.bytes,
        "flops": cost.flops,
        "seconds": cost.seconds,
        "stopped": state.finished,
        "model": str(path.relative_to(folder.path)),
        "options": method.options.model_dump(mode="json"),
        "records": records,
    }
    _add_result(folder, result)
    return result


def _identity(case: Case, method: Method[Any], name: str) -> str:
    """What a saved state must agree with: method, options and request."""
    text = json.dumps([name, case.request.text, method.options.model_dump(mode="json")])
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _save(
    file: Path, identity: str, state: MethodState, records: list[dict[str, Any]], ledger: Ledger
) -> None:
    tensors = join_groups({"model": state.tensors, "extra": state.extra})
    numbers = {
        "identity": identity,
        "round": state.round,
        "numbers": state.numbers,
        "finished": state.finished,
        "records": records,
        "ledger": ledger.to_dict(),
    }
    save_tensors(file, tensors, numbers)


def _restore(
    file: Path, identity: str, setting: Setting
) -> tuple[MethodState | None, list[dict[str, Any]]]:
    """The saved state of this very request and method, if there is one."""
    if not file.is_file():
        return None, []
    tensors, saved = load_tensors(file)
    if saved["identity"] != identity:
        return None, []
    setting.federation.ledger = Ledger(saved["ledger"])
    return (
        MethodState(
            take_group(tensors, "model"),
            take_group(tensors, "extra"),
            saved["numbers"],
            saved["round"],
            saved["finished"],
        ),
        saved["records"],
    )


def results(folder: RunFolder) -> list[dict[str, Any]]:
    """The figures of every method that ran on this run."""
    file = folder.path / "results.json"
    if not file.is_file():
        return []
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error})", "Delete it.") from error
    return list(listed)


def _add_result(folder: RunFolder, result: dict[str, Any]) -> None:
    """Replace the result of the same method and request, or add it."""
    same = (result["method"], result["forget"])
    kept = [r for r in results(folder) if (r["method"], r["forget"]) != same]
    write_text(folder.path / "results.json", json.dumps([*kept, result], indent=1) + "\n")
