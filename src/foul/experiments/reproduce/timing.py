"""How long an experiment will take: two rounds are timed, the rest is multiplied."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.devices import pick_device, plan_cpu
from foul.experiments.reproduce.plan import Asked, Experiment, Shown, Trial
from foul.experiments.reproduce.sizes import config_for
from foul.experiments.reproduce.work import branch_work, learning_work
from foul.experiments.store import ResultStore, result_key
from foul.federation.build import opened
from foul.federation.messages import ClientInfo
from foul.federation.observer import Observer
from foul.learning.rounds import LearningState, learning_round
from foul.report.tables import Cell, Column, Line, Table

ROUNDS = 2


@dataclass(frozen=True)
class Pace:
    """What a round of learning takes, told from two rounds of a few clients.

    Attributes:
        seconds: of a round of all clients.
        asked: clients that were timed.
        clients: of how many.
    """

    seconds: float
    asked: int
    clients: int


def pace(config: Config, observer: Observer | None = None) -> Pace:
    """Time two rounds over as many clients as there are workers, and multiply by the samples.

    The faster of the two counts: the first one also loads and warms up.
    """
    plan = plan_cpu(config.workers, config.threads, pick_device(config.device))
    with opened(config, observer) as setting:
        federation = setting.federation
        asked = few(federation.clients, plan.workers)
        state = LearningState(dict(setting.initial))
        seconds = [
            learning_round(federation, config.learning, state, asked, setting.buffers, "timing")[
                "seconds"
            ]
            for _ in range(ROUNDS)
        ]
        share = _samples(asked) / _samples(federation.clients)
        return Pace(min(seconds) / share, len(asked), len(federation.clients))


def few(clients: Sequence[ClientInfo], count: int) -> list[ClientInfo]:
    """So many clients of the largest domain: equally large, so that no worker waits."""
    sizes: dict[str, int] = {}
    for client in clients:
        sizes[client.domain] = sizes.get(client.domain, 0) + client.samples["train"]
    largest = max(sizes, key=lambda domain: sizes[domain])
    return [client for client in clients if client.domain == largest][:count]


def _samples(clients: Sequence[ClientInfo]) -> int:
    return sum(client.samples["train"] for client in clients)


@dataclass(frozen=True)
class Forecast:
    """What a trial will take for one seed, if nothing of it is known yet."""

    label: str
    seconds_per_round: float
    learning_rounds: float
    branch_rounds: float

    @property
    def minutes(self) -> float:
        return self.seconds_per_round * (self.learning_rounds + self.branch_rounds) / 60

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"minutes": self.minutes}


def forecast(trials: Sequence[Trial], observer: Observer | None = None) -> list[Forecast]:
    """Each trial at the pace of its data set's first one; trials that share their learned model
    are counted once for it."""
    paces: dict[str, Pace] = {}
    found = []
    for trial in trials:
        name = str(trial.source.path or trial.source.name)
        if name not in paces:
            paces[name] = pace(trial.config, observer)
        work = learning_work(trial), branch_work(trial)
        found.append(Forecast(trial.label, paces[name].seconds, *work))
    return found


def forecast_table(found: Sequence[Forecast], seeds: int) -> Table:
    """Minutes of every trial, and of all together."""
    heads = ("trial", "s a round", "rounds of learning", "further, in such rounds", "minutes")
    lines = [
        Line(
            [
                Cell(f.label),
                Cell(f"{f.seconds_per_round:.1f}"),
                Cell(f"{f.learning_rounds:.0f}"),
                Cell(f"{f.branch_rounds:.0f}"),
                Cell(f"{f.minutes:.1f}"),
            ]
        )
        for f in found
    ]
    total = seeds * sum(f.minutes for f in found)
    last = [Cell(f"all, {seeds} seed{'s' * (seeds > 1)}"), *[Cell("")] * 3, Cell(f"{total:.1f}")]
    return Table([Column(head) for head in heads], [*lines, Line(last)])


def larger_networks(
    experiment: Experiment, asked: Asked, runs: Path, observer: Observer
) -> tuple[list[Shown], list[str]]:
    """The networks of the paper, timed for two rounds and extrapolated instead of run; and what
    could not be timed. The experiment itself is done by now: nothing here may lose it."""
    lines, sentences = [], []
    runs.mkdir(parents=True, exist_ok=True)
    store = ResultStore(runs / "timing.json")
    for source in asked.sources:
        for network in experiment.networks:
            changes = _of_the_data(asked.overrides) | {"model.backbone": network}
            try:
                told = _timed(config_for(source, "paper", changes), network, store, observer)
            except Exception as error:
                sentences.append(f"{network} on {source.title} could not be timed: {error}")
                continue
            [trial] = experiment.trials(Asked([source], "paper", asked.forget, changes))
            rounds = learning_work(trial), branch_work(trial)
            cells = [source.title, network, f"{told.asked} of {told.clients}"]
            cells += [f"{told.seconds:.0f}"]
            cells += [f"{told.seconds * rounds[0] / 3600:.1f}"]
            cells += [f"{told.seconds * sum(rounds) / 3600:.0f}"]
            lines.append(Line([Cell(text) for text in cells]))
    heads = ("data", "network", "clients timed", "s a round", "h of learning", "h in all")
    caption = (
        "Not run: the paper's networks at full width. Two rounds were timed here, over a few "
        "clients, and multiplied to all clients and the paper's rounds, for one seed."
    )
    shown = [Shown(caption, Table([Column(head) for head in heads], lines))] if lines else []
    return shown, sentences


def _of_the_data(overrides: dict[str, Any]) -> dict[str, Any]:
    """What a user changed of images, clients and the machine: that holds for any network."""
    return {
        key: value
        for key, value in overrides.items()
        if key.startswith(("data.", "clients.")) or key in ("device", "workers", "threads")
    }


def _timed(config: Config, network: str, store: ResultStore, observer: Observer) -> Pace:
    """The pace of these images on this machine, if it is known; else it is timed now."""
    device = pick_device(config.device)
    place = [config.data.path, device, plan_cpu(config.workers, config.threads, device)]
    key = result_key(config, "", "timing", {"place": [str(thing) for thing in place]})
    known = store.get(key)
    if known is None:
        observer.on_message(f"timing two rounds of {network} at full width")
        known = store.put(key, asdict(pace(config, observer)))
    return Pace(**known)
