"""What an experiment is: trials to run, and a way to tell what came out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from foul.config.schema import Config
from foul.experiments.reproduce.sizes import Size
from foul.experiments.reproduce.sources import Source
from foul.experiments.study import Failure
from foul.federation.observer import Observer
from foul.report.tables import Table
from foul.runs.folder import RunFolder

Measure = Callable[[Config, RunFolder, Observer], dict[str, Any]]
"""Something measured of a learned model; JSON-like."""


@dataclass(frozen=True)
class Variant:
    """A row of a table or a point of a sweep: a method with options, under a label.

    Attributes:
        printed: the paper's row that stands beside it, if it has one.
        at: the values that a sweep changed.
    """

    label: str
    method: str
    options: tuple[str, ...] = ()
    printed: str = ""
    at: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A model that is learned once per seed, and what branches from it.

    Attributes:
        label: tells it from the other trials of the experiment.
        forget: requests; none if learning is all that matters.
        at: the values that a sweep changed.
        measures: what is measured of the learned model, by name.
    """

    label: str
    source: Source
    config: Config
    forget: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    at: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What a trial gave for one seed.

    Attributes:
        learned: its rounds, its accuracy, and what was measured of it.
        results: one per variant and request, with the variant's label; gaps where Retrain is there.
        failures: the variants that gave none, by label.
    """

    trial: Trial
    seed: int
    run: Path
    learned: Mapping[str, Any]
    results: Sequence[Mapping[str, Any]]
    failures: Sequence[Failure] = ()


@dataclass(frozen=True)
class Asked:
    """What a user asked for."""

    sources: Sequence[Source]
    size: Size
    forget: Sequence[str] = ()
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """A table with its caption."""

    caption: str
    table: Table


@dataclass(frozen=True)
class Outcome:
    """What an experiment has to tell.

    Attributes:
        figures: pictures by name.
        notes: sentences: where it differs from the paper, and why.
    """

    tables: Sequence[Shown]
    figures: Mapping[str, Figure]
    notes: Sequence[str]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper as a command.

    Attributes:
        what: what it shows, in a line.
        where: where the paper prints it.
        sets: the paper's data sets.
        trials: what to run for what was asked.
        tell: what came out, as tables, figures and sentences.
        minutes: what it takes at `cpu` size on two quiet cores, PACS64 where it needs data.
        budget: how that was estimated.
        embedded: whether it needs no data of the user's.
        own: settings that it gives its own values: a user cannot choose them.
        forgets: whether it serves requests.
        networks: larger networks that are timed for two rounds instead of run, at `cpu` size.
    """

    name: str
    what: str
    where: str
    sets: tuple[str, ...]
    trials: Callable[[Asked], list[Trial]]
    tell: Callable[[Asked, Sequence[Done]], Outcome]
    minutes: int
    budget: str
    embedded: bool = False
    own: tuple[str, ...] = ()
    forgets: bool = True
    networks: tuple[str, ...] = ()
