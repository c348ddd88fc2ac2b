"""The unlearning stage as part of a run: checked first, resumed where it stopped, evaluated."""

import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.errors import UserError
from foul.evaluation.angles import step_angles
from foul.evaluation.forgetting import accuracies, assess
from foul.evaluation.gaps import speeds
from foul.federation.build import Setting, opened
from foul.federation.federation import QuorumError
from foul.federation.observer import Observer
from foul.names import find
from foul.runs.folder import RunFolder
from foul.runs.results import add_results
from foul.unlearning.case_of_run import case_of
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.methods import METHODS, make_method
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import check
from foul.unlearning.saved import identity_of, known_result, label_of, restore, save


def unlearn(
    run: str | Path,
    forget: str,
    method: str = "foul",
    overrides: Iterable[str] = (),
    observer: Observer | None = None,
    track: bool = False,
    setting: Setting | None = None,
    without: Collection[str] | None = None,
    config: Config | None = None,
    measured: bool = True,
) -> dict[str, Any]:
    """Make a run's learned model forget; the learned model itself stays as it is.

    The unlearned model becomes `models/METHOD-FORGET.safetensors`, the figures are added to
    `results.json`. Interrupted, the same call continues where it stopped; complete, it answers what
    is there.

    Args:
        run: a run folder whose learning stage is complete.
        forget: `domain:NAME` or `client:ID`, several separated by commas.
        method: a name of `foul methods`.
        overrides: options of the method, as `key=value`.
        track: also measure FA, RA and TA of the model after every round.
        setting: the run's federation, if it is open already; it stays open.
        without: clients that are neither forgotten nor retained; default: those that were erased.
        config: the run's configuration with other settings of the machine (device, engine).
        measured: evaluate the model at its end. Else only its costs are known, and nothing is
            added to `results.json`: for forget clients that are out of reach.

    Returns:
        The figures, as in `results.json`.

    Raises:
        UserError: the request, the method or the run cannot be used as asked.
        QuorumError: too few clients answered; complete rounds are saved.
    """
    observer = observer or Observer()
    folder = RunFolder.open(Path(run))
    config, chosen = config or folder.config(), make_method(method, overrides)
    folder.load_model("learned")
    others = [name for name, entry in METHODS.items() if not entry.method.requirements.l2u]
    check(method, chosen.needs, config.learning.objective, config.model.head, others)
    left_out = folder.erased() if without is None else without
    try:
        with opened(
            config, observer, folder.path / "features", setting, left_out, folder.clients()
        ) as ready:
            folder.require_same_data(ready.facts())
            _refuse_erased(folder, forget, left_out, ready.federation.without)
            request = ForgetRequest.parse(forget, ready.federation.clients)
            case = case_of(folder, config, ready, request, chosen.needs, method)
            with folder.lock():
                # Of the case as it came: what a method then learns by itself follows from it.
                identity = identity_of(case, chosen, method)
                known = known_result(folder, identity, track)
                if known is not None:
                    observer.on_message(
                        f"{method} has served {request.text} already; nothing to do"
                    )
                    return known
                own = chosen.learning()
                if own is not None:
                    case = _own_learning(folder, ready, case, own, method, observer)
                return _run(
                    folder, ready, case, chosen, method, identity, observer, track, measured
                )
    except QuorumError as error:
        raise QuorumError(
            error.what,
            "Ask once more when they are back, or choose a method that does not need them "
            "(`foul methods`).",
        ) from error


def _refuse_erased(
    folder: RunFolder, forget: str, left_out: Collection[str], not_there: Collection[str]
) -> None:
    """Say of an erased client that it was, not that there is none; and let none slip back in.

    Raises:
        UserError: somebody asked for was erased before, or would be asked.
    """
    back = set(left_out) - set(not_there)
    if back:
        raise UserError(
            f"{', '.join(sorted(back))} must take no part in {folder.path}, but the federation "
            "that was opened would ask",
            "Open it with without=folder.erased().",
        )
    kind, names = ForgetRequest.split(forget)
    # Among all of them: else a client could pass for an erased one with a similar name.
    everyone = {*left_out, *(client.id for client in folder.clients())}
    for name in names:
        if kind == "client" and find(name, everyone) in left_out:
            raise UserError(
                f"Client '{name}' was erased from {folder.path}",
                f"It takes part again after: foul erase readmit {folder.path} {name} --reason WHY",
            )


def _own_learning(
    folder: RunFolder,
    setting: Setting,
    case: Case,
    learning: Method[Any],
    name: str,
    observer: Observer,
) -> Case:
    """The case as the method's own learning stage leaves it; resumed, or known from an earlier
    request. It sees all clients as retained."""
    everyone = ForgetRequest("", (), tuple(setting.federation.clients))
    whole = replace(case, request=everyone)
    # By the stage's own name: methods that learn alike share it.
    identity = identity_of(whole, learning, learning.name)
    file = folder.path / "unlearning" / f"{learning.name}.safetensors"
    file.parent.mkdir(exist_ok=True)
    state, records = restore(file, identity, setting)
    if state is None:
        state, records = learning.start(whole), []
    if not state.finished:
        observer.on_message(f"{name}: its own learning stage")
        observer.on_stage(learning.name, case.learned_rounds, state.round)
    while not state.finished:
        record = {"stage": learning.name, "round": state.round + 1, **learning.step(whole, state)}
        records.append(record)
        save(file, identity, state, records, setting.federation.ledger)
        observer.on_round(record)
    return replace(case, learned=state.tensors, learned_rounds=state.round, own=state)


def _run(
    folder: RunFolder,
    setting: Setting,
    case: Case,
    method: Method[Any],
    name: str,
    identity: str,
    observer: Observer,
    track: bool,
    measured: bool,
) -> dict[str, Any]:
    label = label_of(name, case.request.text)
    file = folder.path / "unlearning" / f"{label}.safetensors"
    file.parent.mkdir(exist_ok=True)
    state, records = restore(file, identity, setting)
    if state is None:
        began = time.perf_counter()
        state, records = method.start(case), []
        state.numbers["wall"] = time.perf_counter() - began
        if not state.finished:
            # What the start has cost must not be lost with a first round that is killed.
            save(file, identity, state, records, setting.federation.ledger)
    observer.on_message(f"{name}: forgetting {case.request.text}")
    if track and "start" not in state.numbers:
        state.numbers["start"] = accuracies(setting.federation, state.tensors, case.request)
        learned = state.numbers["start"]
        if any(state.tensors[name] is not tensor for name, tensor in case.learned.items()):
            # It does not begin with the learned model.
            learned = accuracies(setting.federation, case.learned, case.request)
        state.numbers["learned_fa"] = learned["fa"]
    planned = method.planned(case, state)
    observer.on_stage(method.name, planned, state.round)
    while not state.finished:
        began, before = time.perf_counter(), dict(state.tensors)
        record = {"stage": method.name, "round": state.round + 1, **method.step(case, state)}
        # On the clock, without the measurements that follow.
        state.numbers["wall"] = state.numbers.get("wall", 0.0) + time.perf_counter() - began
        if track:
            record["curve"] = accuracies(setting.federation, state.tensors, case.request)
            record["curve"] |= step_angles(
                setting.federation, before, state.tensors, case.request, case.buffers, state.round
            )
        records.append(record)
        save(file, identity, state, records, setting.federation.ledger)
        if planned != (planned := method.planned(case, state)):
            observer.on_stage(method.name, planned, state.round)
        observer.on_round(record)
    path = folder.save_model(label, state.tensors, {"round": state.round, "forget": label})
    about = {"method": name, "forget": case.request.text, "identity": identity}
    figures: dict[str, Any] = {}
    if measured:
        found = assess(setting.federation, state.tensors, case.request, case.config.backdoor)
        folder.save_evaluation(label, about | found.detail())
        figures = {**_own_figures(setting, case), **found.summary()}
    cost = setting.federation.ledger.total(method.name)
    curve = _curve(state, records)
    result = {
        **about,
        "seed": case.config.seed,
        "learned_rounds": case.learned_rounds,
        **figures,
        "rounds": state.round,
        "learned_fa": state.numbers.get("learned_fa"),
        **speeds(curve, None, state.numbers.get("learned_fa")),
        "bytes": cost.bytes,
        "flops": cost.flops,
        **cost.to_dict(),
        "wall_seconds": state.numbers.get("wall"),
        "disk": _disk(folder, file, state, method) + _kept(case.own),
        "stopped": state.finished,
        "model": str(path.relative_to(folder.path)),
        "options": method.options.model_dump(mode="json"),
        "estimates": state.numbers.get("estimates", {}),
        "curve": curve,
        "records": records,
    }
    if measured:
        add_results(folder.results_file, [result])
    return result


def _own_figures(setting: Setting, case: Case) -> dict[str, Any]:
    """Accuracy of the model that the method itself learned, before it forgot, if it did."""
    if case.own is None:
        return {}
    return {"own_learning": accuracies(setting.federation, case.own.tensors, case.request)}


def _disk(folder: RunFolder, file: Path, state: MethodState, method: Method[Any]) -> int:
    """Bytes that the method had to keep: its state between rounds, clients' copies or outputs
    of frozen parts and what their compression lost, and stored updates where it needs them."""
    places, features = [file], folder.path / "features"
    for key in ("frozen", "base"):
        if key in state.numbers:
            places += (features / state.numbers[key]).glob("*")
    if "session" in state.numbers:
        places += (features / "sessions").glob(f"{state.numbers['session']}-*")
    if method.needs.stored_deltas:
        places += folder.deltas.glob("*")
    if method.needs.history:
        places.append(folder.history_file)
    return sum(place.stat().st_size for place in places if place.is_file())


def _kept(own: MethodState | None) -> int:
    """Bytes that the method's own learning stage keeps beside the model."""
    return sum(tensor.nbytes for tensor in own.extra.values()) if own else 0


def _curve(state: MethodState, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """FA, RA and TA before the first round and after each, as far as they were tracked."""
    tracked = [{"round": r["round"], **r["curve"]} for r in records if "curve" in r]
    start = state.numbers.get("start")
    return [{"round": 0, **start}, *tracked] if start and len(tracked) == state.round else tracked
