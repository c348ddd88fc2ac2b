"""`foul learn`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from foul.cli.arguments import Quiet, split_config
from foul.cli.info import show_summary
from foul.cli.output import JSON_OPTION, print_json
from foul.cli.remote import handed_over, shown
from foul.config import load_config
from foul.errors import UserError
from foul.federation.observer import Observers
from foul.learning.stage import learn as run_learning
from foul.runs.folder import RunFolder
from foul.runs.tensorboard import tensorboard_observer


def learn(
    config: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, or the name of a shipped configuration (`foul config list`)."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run folder; default runs/CONFIG.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out where it stopped.")
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Train a model over all clients, so that it can forget one later.

    The run folder holds the resolved configuration, a line per round, checkpoints and the model.
    Killed at any moment, the run continues with --resume and ends with the same bits.

    Examples:

      foul learn digits --out runs/first

      foul learn pacs data.path=PACS.zip learning.rounds=60 --out runs/pacs

      foul learn --resume --out runs/pacs
    """
    config, texts = split_config(config, overrides)
    if out is None:
        if resume:
            raise UserError("--resume needs the run folder", "Add --out RUN.")
        out = Path("runs") / (Path(config).stem if config else "digits")
    own = RunFolder.open(out).path / "config.toml" if resume else "digits"
    chosen = load_config(config or own, texts)
    if handed_over(chosen, out, quiet):
        return
    with shown(quiet) as display:
        observer = display
        if chosen.tensorboard:
            observer = Observers(display, tensorboard_observer(out))
        folder = run_learning(
            chosen, out, resume=resume, observer=observer, command=shlex.join(sys.argv)
        )
    if as_json:
        print_json(folder.summary())
    else:
        show_summary(folder)
