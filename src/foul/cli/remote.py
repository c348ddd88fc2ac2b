"""Verbs that ask clients: performed here, or handed over to a Flower ServerApp."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from foul.cli.progress import ProgressDisplay
from foul.config import Config, load_config
from foul.federation.observer import Observer
from foul.flower.connect import is_serving
from foul.flower.driver import perform_remotely
from foul.flower.job import JobLog, current_job
from foul.runs.folder import RunFolder

_MACHINE = ("device", "workers", "threads", "engine", "flower")
"""Settings of where a run happens; all others are what it does."""


@contextmanager
def shown(quiet: bool) -> Iterator[Observer]:
    """Who is told of progress: a display, or the log for whoever waits elsewhere."""
    job = current_job()
    if job is not None:
        yield JobLog(job)
        return
    with ProgressDisplay(quiet) as display:
        yield display


def handed_over(config: Config, run: Path, quiet: bool) -> bool:
    """With `engine=flower`, have a ServerApp perform this very command; False if it is ours."""
    if config.engine != "flower" or is_serving():
        return False
    with ProgressDisplay(quiet) as display:
        output, code = perform_remotely(sys.argv[1:], run, config.flower, display)
    typer.echo(output, nl=False)
    if code:
        raise typer.Exit(code)
    return True


def on_machine(folder: RunFolder, texts: Sequence[str]) -> tuple[Config, list[str]]:
    """A run's configuration with other settings of the machine, and the texts that are none."""
    own = [text for text in texts if text.partition("=")[0].strip().split(".")[0] in _MACHINE]
    rest = [text for text in texts if text not in own]
    return load_config(folder.path / "config.toml", own), rest
