"""Arguments that several verbs of `foul erase` share."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.remote import on_machine
from foul.config.schema import Config
from foul.erasure.store import Store
from foul.errors import UserError

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that has learned.")]
Number = Annotated[str, typer.Argument(metavar="REQUEST", help="Its number, like 3 or R-0003.")]
Machine = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Where it runs: device, engine, flower.KEY."),
]


def machine_config(store: Store, texts: list[str] | None) -> Config:
    """The run's configuration with other settings of the machine.

    Raises:
        UserError: another setting is named.
    """
    config, others = on_machine(store.folder, texts or [])
    if others:
        raise UserError(
            f"'{others[0]}' cannot be set here", "Only device, workers, threads, engine, flower."
        )
    return config
