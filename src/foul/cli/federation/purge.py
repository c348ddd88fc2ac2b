"""`foul federation purge`."""

import typer

from foul.cli.federation.arguments import DEFAULT, Folder, stopped
from foul.cli.output import size
from foul.deploy.purge import purge_database


def purge(directory: Folder = DEFAULT) -> None:
    """Remove messages of runs that are over, and their rests, from the SuperLink's database.

    Flower deletes messages when they have been fetched, but their bytes stay in the file.
    `foul erase run` does this by itself.
    """
    before, after = purge_database(stopped(directory).folder.database)
    typer.echo(f"The SuperLink's database: {size(before)}, now {size(after)}.")
