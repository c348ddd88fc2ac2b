"""`foul federation unregister`."""

from typing import Annotated

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.deploy.federation import RunningFederation


def unregister(
    client: Annotated[str, typer.Argument(help="The client whose node must stay out.")],
    directory: Folder = DEFAULT,
) -> None:
    """Keep a node out: its key is never accepted again."""
    RunningFederation.open(directory).unregister(client)
    typer.echo(f"The node of client {client} is no longer let in.")
