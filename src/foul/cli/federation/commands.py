"""`foul federation commands`."""

import getpass
from typing import Annotated

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.deploy.commands import nginx_server, shell_commands, systemd_unit
from foul.deploy.federation import RunningFederation


def commands(
    directory: Folder = DEFAULT,
    systemd: Annotated[bool, typer.Option("--systemd", help="A unit for systemd instead.")] = False,
    nginx: Annotated[
        str | None,
        typer.Option("--nginx", metavar="NAME", help="A server for nginx instead of our proxy."),
    ] = None,
) -> None:
    """Print what runs here as commands, to start it by other means."""
    federation = RunningFederation.open(directory)
    if systemd:
        typer.echo(systemd_unit(federation.folder, getpass.getuser()))
    elif nginx is not None:
        typer.echo(nginx_server(federation, nginx))
    else:
        typer.echo(shell_commands(federation))
