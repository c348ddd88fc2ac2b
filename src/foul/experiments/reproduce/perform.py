"""Run the trials of an experiment: learn once per seed, branch, keep every result."""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.errors import UserError
from foul.experiments.reproduce.earlier import Earlier, take
from foul.experiments.reproduce.plan import Done, Trial, Variant
from foul.experiments.reproduce.work import branch_work, branches, learning_work, round_work
from foul.experiments.store import ResultStore, key_of_request, result_key
from foul.experiments.study import (
    Failure,
    SomeFailed,
    Study,
    check,
    clients_of,
    compared,
    run_study,
    started,
)
from foul.federation.observer import Observer, Observers
from foul.learning.stage import learn
from foul.runs.folder import RunFolder
from foul.unlearning.foul import Foul
from foul.unlearning.methods import METHODS

_MACHINE = {"seed", "device", "workers", "tensorboard"}


def perform(
    trials: Sequence[Trial],
    seeds: int,
    runs: Path,
    observer: Observer | None = None,
    earlier: Mapping[str, Earlier] | None = None,
) -> list[Done]:
    """Everything that the trials ask for; stopped at any moment, the same call goes on.

    Trials with the same configuration share their runs in `runs`, whichever experiment they belong
    to, and a result that is known, there or from an earlier command's file, is not made again.

    Raises:
        UserError: a trial cannot be run as asked, or every method of a trial failed.
    """
    observer, earlier = observer or Observer(), earlier or {}
    trials = [_checked(trial, observer) for trial in trials]
    steps = [(trial, number) for number in range(seeds) for trial in trials]
    left = [_work_left(trial, number, runs, earlier) for trial, number in steps]
    clock = Clock(observer, sum(left))
    both = Observers(observer, clock)
    done = []
    for (trial, number), work in zip(steps, left, strict=True):
        observer.on_message(f"{trial.label}, seed {trial.config.seed + number}")
        done.append(_perform(trial, number, runs, both, earlier))
        clock.passed(work)
    return done


def _work_left(trial: Trial, number: int, runs: Path, earlier: Mapping[str, Earlier]) -> float:
    """Without what an earlier call, or another experiment, has done."""
    config, place, folder = _placed(trial, number, runs)
    known = ResultStore(place / "store.json").results.keys() | earlier.keys()
    left = [
        branch
        for branch, key in zip(branches(trial), _keys(trial, config), strict=True)
        if key not in known
    ]
    learned = started(folder) and RunFolder.open(folder).learned()
    return (0.0 if learned else learning_work(trial)) + branch_work(trial, left)


def _keys(trial: Trial, config: Config) -> list[str]:
    """Under which the results of its branches are kept."""
    return [
        key_of_request(config, request, variant.method, variant.options)
        for request, variant in branches(trial)
    ]


def _placed(trial: Trial, number: int, runs: Path) -> tuple[Config, Path, Path]:
    """The trial's configuration with this seed, where its runs are, and the seed's folder."""
    config = trial.config.model_copy(update={"seed": trial.config.seed + number})
    place = run_place(config, runs)
    return config, place, place / f"seed-{config.seed}"


def _checked(trial: Trial, observer: Observer) -> Trial:
    """The trial with its requests as results are kept by them.

    Raises:
        UserError: it cannot be run as asked.
    """
    forget: Sequence[str] = trial.forget
    for batch in batches(trial.variants):
        forget = check(_study(trial.config, trial.forget, batch), observer)
    return replace(trial, forget=tuple(forget))


class Clock(Observer):
    """How much is done of all rounds, and how long the rest will take at this pace."""

    def __init__(self, display: Observer, total: float) -> None:
        self._display, self._total = display, total
        self._began = self._told = time.monotonic()
        self._worked = self._before = self._within = 0.0

    def on_round(self, record: dict[str, Any]) -> None:
        work = round_work(str(record.get("stage", "learning")))
        self._worked += work
        self._within += work
        self._show()

    def passed(self, planned: float) -> None:
        """A trial is complete, by fewer rounds perhaps than were planned."""
        self._before += planned
        self._within = 0.0
        self._show()

    def left(self) -> float | None:
        """Seconds, or None before the first round."""
        if not self._worked:
            return None
        pace = (time.monotonic() - self._began) / self._worked
        return pace * max(0.0, self._total - self._before - self._within)

    def _show(self) -> None:
        if not self._total:
            return
        done = min(self._total, self._before + self._within)
        # Whole numbers of rounds read well; the bar tells the time that is left.
        self._display.on_work("everything, in rounds", round(done), round(self._total))
        left, now = self.left(), time.monotonic()
        if left is not None and now - self._told > 60:
            self._told = now
            share = 100 * done / self._total
            self._display.on_message(f"{share:.0f} % done, about {spell(left)} left")


def spell(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def run_place(config: Config, runs: Path) -> Path:
    """Where the runs of a configuration are, one folder per seed in it."""
    # Other threads add up in another order: a run of its own, if somebody chose them.
    usual = config.threads == Config.model_fields["threads"].default
    without = _MACHINE | {"threads"} if usual else _MACHINE
    text = json.dumps(config.model_dump(mode="json", exclude=without), sort_keys=True)
    key = blake2b(text.encode(), digest_size=6).hexdigest()
    return runs / f"{config.data.name}-{key}"


def batches(variants: Sequence[Variant]) -> list[list[Variant]]:
    """The variants in studies: in each, a method has one set of options, and there is one FOUL, so
    that none finds the outputs of frozen parts that another has paid for."""
    found: list[list[Variant]] = []
    for variant in variants:
        for batch in found:
            if all(_kind(other) != _kind(variant) for other in batch):
                batch.append(variant)
                break
        else:
            found.append([variant])
    return found


def _kind(variant: Variant) -> str:
    return "foul" if METHODS[variant.method].method is Foul else variant.method


def _perform(
    trial: Trial, number: int, runs: Path, observer: Observer, earlier: Mapping[str, Earlier]
) -> Done:
    config, place, folder = _placed(trial, number, runs)
    again = started(folder)
    run = learn(config, folder, resume=again, observer=observer)
    if again and not trial.variants:
        # Where something branches, the study looks.
        now = [asdict(client) for client in clients_of(config, observer)]
        run.require_same_data({"clients": now})
    store = ResultStore(place / "store.json")
    take(earlier, _keys(trial, config), run.summary()["accuracy"], store)
    results: list[dict[str, Any]] = []
    failures: list[Failure] = []
    for request in trial.forget:
        for batch in batches(trial.variants):
            study = _study(config, (request,), batch)
            found, failed = _branched(study, batch, folder, store, observer)
            results += found
            failures += failed
            # What is cached now belongs to these variants: the next pay for their own.
            shutil.rmtree(folder / "features", ignore_errors=True)
    if trial.variants and not results:
        raise UserError(f"Every method failed on {trial.label} ({failures[0]})")
    measured = {
        name: _measured(name, trial, config, run, store, observer) for name in trial.measures
    }
    learned = _learned(run) | measured
    return Done(trial, config.seed, folder, learned, _compared(results), failures)


def _study(config: Config, forget: Sequence[str], batch: Sequence[Variant]) -> Study:
    return Study(
        config,
        forget,
        [variant.method for variant in batch],
        options={variant.method: variant.options for variant in batch},
        keep_going=True,
        divergence=False,
    )


def _branched(
    study: Study,
    batch: Sequence[Variant],
    folder: Path,
    store: ResultStore,
    observer: Observer,
) -> tuple[list[dict[str, Any]], list[Failure]]:
    """The results of some variants, labelled, and those that failed under their labels."""
    failures: list[Failure] = []
    by_method = {variant.method: variant for variant in batch}
    try:
        found = run_study(study, folder, observer, store)
    except SomeFailed as error:
        found, failures = error.results, error.failures
    labelled = [
        result
        | {"label": by_method[result["method"]].label, "at": dict(by_method[result["method"]].at)}
        for result in found
    ]
    return labelled, [replace(f, method=by_method[f.method].label) for f in failures]


def _compared(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All variants of each request with their gaps to its Retrain."""
    requests = dict.fromkeys(result["forget"] for result in results)
    return [
        told for name in requests for told in compared([r for r in results if r["forget"] == name])
    ]


def _measured(
    name: str,
    trial: Trial,
    config: Config,
    run: RunFolder,
    store: ResultStore,
    observer: Observer,
) -> Mapping[str, Any]:
    key = result_key(config, "", f"measure {name}", {})
    known = store.get(key)
    return (
        known if known is not None else store.put(key, trial.measures[name](config, run, observer))
    )


def _learned(run: RunFolder) -> dict[str, Any]:
    """The rounds of the learning stage and how it ended, without the clients' shares."""
    summary = run.summary()
    return {
        "rounds": [
            {key: record[key] for key in ("round", "validation_accuracy", "losses", "seconds")}
            for record in run.records()
        ],
        "accuracy": {
            split: {"all": told["all"], "domains": told["domains"]}
            for split, told in summary["accuracy"].items()
        },
    }
