"""`foul flower`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.deploy.project import init_project

app = typer.Typer(no_args_is_help=True, help="For people who know Flower.")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder for the app.")],
    command: Annotated[
        str, typer.Option("--command", help="What a run does, without the leading `foul`.")
    ] = "learn digits --out runs/flower",
) -> None:
    """Write a Flower app that `flwr run` starts; the code is this package.

    Example:

      foul flower init app && flwr run app foul --stream
    """
    init_project(folder, command, Path.cwd())
    typer.echo(f"Written: {folder}. Start it with `flwr run {folder} foul --stream`.")
