"""`foul federation register`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.deploy.federation import RunningFederation
from foul.deploy.prepare import require_client_id
from foul.errors import UserError


def register(
    client: Annotated[str, typer.Argument(help="The client that the node will serve.")],
    key: Annotated[Path, typer.Argument(help="The public key of its node (key.pub).")],
    directory: Folder = DEFAULT,
) -> None:
    """Let a site's node in: from now on, the owner of this key is this client."""
    federation = RunningFederation.open(directory)
    require_client_id(client)
    if not key.is_file():
        raise UserError(f"{key} is not there", "It is nodes/ID/key.pub of the site's folder.")
    number = federation.register(key, client)
    typer.echo(f"Node {number} may serve client {client}.")
