"""One table or figure of the paper, from the images to the files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foul.errors import UserError
from foul.experiments.reproduce import notes
from foul.experiments.reproduce.earlier import Earlier
from foul.experiments.reproduce.made import made_source
from foul.experiments.reproduce.perform import perform
from foul.experiments.reproduce.plan import Asked, Experiment, Outcome
from foul.experiments.reproduce.sizes import Size
from foul.experiments.reproduce.sources import Source, find_sources
from foul.experiments.reproduce.timing import larger_networks
from foul.experiments.reproduce.write import write
from foul.experiments.study import Failure
from foul.federation.observer import Observer


@dataclass(frozen=True)
class Reproduced:
    """What came out, and where it was written."""

    outcome: Outcome
    told: dict[str, Any]
    files: Sequence[Path]
    failures: Sequence[Failure] = ()


def sources_for(
    experiment: Experiment, texts: Sequence[str], names: Sequence[str], size: Size, runs: Path
) -> list[Source]:
    """The data sets of an experiment: the user's, embedded ones, or at smoke size made ones.

    Raises:
        UserError: there are none, or they are not what they are said to be.
    """
    if experiment.embedded:
        [name] = experiment.sets
        return [_embedded(name, texts, names)]
    if not texts and not names and size == "smoke":
        return [made_source(name, runs / "made") for name in experiment.sets]
    return find_sources(texts, names, experiment.sets)


def _embedded(name: str, texts: Sequence[str], names: Sequence[str]) -> Source:
    """An embedded set, with the folder of its original files if the user has one."""
    if len(texts) > 1 or names:
        raise UserError(
            f"This is about {name} alone", "Give no data, or the folder of the MNIST files."
        )
    path = Path(texts[0]) if texts else None
    if path is not None and not path.is_dir():
        raise UserError(f"There is no folder {path}", "Give no data, or the MNIST files' folder.")
    return Source(name, path, ())


def _refuse_idle(experiment: Experiment, asked: Asked) -> None:
    """Nothing that was asked for is left aside without a word.

    Raises:
        UserError: a setting that the experiment gives its own values, or a request where nothing
            is forgotten.
    """
    own = sorted(asked.overrides.keys() & set(experiment.own))
    if own:
        raise UserError(f"{experiment.name} sets {', '.join(own)} itself", "Leave it out.")
    if asked.forget and not experiment.forgets:
        raise UserError(
            f"{experiment.name} looks at learned models: nothing is forgotten",
            "Leave --forget out.",
        )


def reproduce(
    experiment: Experiment,
    asked: Asked,
    seeds: int,
    out: Path,
    runs: Path,
    command: str = "",
    docs: Path | None = None,
    observer: Observer | None = None,
    earlier: Mapping[str, Earlier] | None = None,
) -> Reproduced:
    """Run what is missing, compare with the paper, write the files.

    Raises:
        UserError: the experiment cannot be run as asked.
    """
    observer = observer or Observer()
    _refuse_idle(experiment, asked)
    done = perform(experiment.trials(asked), seeds, runs, observer, earlier)
    outcome = experiment.tell(asked, done)
    tables = list(outcome.tables)
    not_timed: list[str] = []
    if asked.size == "cpu":
        shown, not_timed = larger_networks(experiment, asked, runs, observer)
        tables += shown
    reasons = [*outcome.notes, *notes.scale(experiment, asked, done), *not_timed]
    sentences = [*notes.failures(done), *notes.origins(done), *reasons]
    outcome = replace(outcome, tables=tables, notes=sentences)
    told, files = write(experiment, asked, done, outcome, out, command, docs)
    failures = [failure for d in done for failure in d.failures]
    return Reproduced(outcome, told, files, failures)
