"""Arguments that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")]
StudyOverrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings to change; METHOD:KEY=VALUE changes an option of a method.",
    ),
]
Requests = Annotated[
    list[str] | None,
    typer.Option("--forget", "-f", help="domain:NAME or client:ID; repeat for several requests."),
]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store", help="A JSON file that collects results; what it has is not run again."
    ),
]


def split_config(config: str | None, overrides: list[str] | None) -> tuple[str | None, list[str]]:
    """The configuration's name and the overrides; `key=value` in its place is an override."""
    texts = list(overrides or [])
    if config is not None and "=" in config:
        return None, [config, *texts]
    return config, texts


def names(text: str | None) -> list[str] | None:
    """The names of a list with commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
