"""`foul federation renew`."""

import typer

from foul.cli.federation.arguments import DEFAULT, Folder, stopped
from foul.deploy.certificates import renew_server_certificate, valid_until


def renew(directory: Folder = DEFAULT) -> None:
    """A new server certificate for the same names; sites notice nothing."""
    federation = stopped(directory)
    renew_server_certificate(federation.folder.certificates)
    until = valid_until(federation.folder.certificates / "server.crt")
    typer.echo(f"The server's certificate is valid until {until:%Y-%m-%d}.")
