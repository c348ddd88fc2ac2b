"""`foul federation join`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.arguments import Quiet, split_config
from foul.cli.federation.arguments import DEFAULT, ConfigName, Folder, NoStart, Overrides, Patience
from foul.cli.federation.starting import start
from foul.cli.output import JSON_OPTION
from foul.config import load_config
from foul.deploy.addresses import split_port, with_port
from foul.deploy.federation import PATIENCE, RunningFederation
from foul.deploy.folder import FederationFolder
from foul.deploy.prepare import prepare_site, require_flower
from foul.errors import UserError


def join(
    server: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The server's proxy.")],
    config: ConfigName = None,
    overrides: Overrides = None,
    client: Annotated[str, typer.Option("--client", "-c", help="The id of this client.")] = "",
    ca: Annotated[
        Path | None, typer.Option("--ca", help="certs/ca.crt of the server's folder.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="This client's images, as for `foul node`.")
    ] = None,
    domain: Annotated[str, typer.Option("--domain", help="Their domain's name.")] = "",
    directory: Folder = DEFAULT,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The node's own local port; 0: any.")
    ] = 0,
    no_start: NoStart = False,
    timeout: Patience = PATIENCE,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Serve one client from this machine, for a server elsewhere.

    Makes the node's key: send its public half to the server, where `foul federation register` lets
    it in. Until then the node asks again every few seconds.

    Example:

      foul federation join fl.example.org:18443 folder --client clinic-3 --data scans --ca ca.crt
    """
    require_flower()
    folder = FederationFolder.at(directory)
    if not folder.plan.exists():
        if not client or ca is None:
            raise UserError(
                "A site needs --client and --ca", "Say whom it serves and whom to trust."
            )
        where = [*(["--data", str(data.expanduser().absolute())] if data else [])]
        where += ["--domain", domain] if domain else []
        chosen = load_config(*split_config(config, overrides))
        prepare_site(folder, chosen, client, server, ca, data=where, port=port)
    federation = RunningFederation.open(directory)
    if federation.is_server:
        raise UserError(f"{directory} is a server's folder", "Choose another --dir for the site.")
    (own,) = federation.plan.clients
    if federation.plan.door != with_port(*split_port(server)) or client not in ("", own):
        raise UserError(
            f"{directory} is the site of {own} at {federation.plan.door}", "Choose another --dir."
        )
    start(federation, no_start, timeout, quiet, as_json)
    if not as_json and not federation.has_joined(own):
        typer.echo(
            f"Send {federation.folder.key(own)}.pub to the server. There:\n"
            f"  foul federation register {own} {own}.pub --dir SERVER-FOLDER"
        )
