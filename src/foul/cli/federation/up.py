"""`foul federation up`."""

from typing import Annotated

import typer

from foul.cli.arguments import Quiet, split_config
from foul.cli.federation.arguments import DEFAULT, ConfigName, Folder, NoStart, Overrides, Patience
from foul.cli.federation.starting import start
from foul.cli.output import JSON_OPTION
from foul.config import load_config
from foul.config.load import config_to_toml
from foul.deploy.addresses import LOCAL
from foul.deploy.federation import PATIENCE, RunningFederation
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan
from foul.deploy.prepare import driven_by, prepare_server, require_flower
from foul.errors import UserError


def up(
    config: ConfigName = None,
    overrides: Overrides = None,
    clients: Annotated[
        int | None,
        typer.Option("--clients", "-n", min=0, help="How many nodes; default all; 0: server only."),
    ] = None,
    named: Annotated[
        list[str] | None, typer.Option("--client", "-c", help="A client by its id; repeat.")
    ] = None,
    directory: Folder = DEFAULT,
    host: Annotated[str, typer.Option("--host", help="Where nodes reach this machine.")] = LOCAL,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name or address for the certificate; repeat."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65000, help="The first of the ports; 0: any.")
    ] = 18443,
    no_start: NoStart = False,
    timeout: Patience = PATIENCE,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Start a SuperLink and nodes here, as separate processes; make keys if there are none.

    TLS and node keys are always on. Started twice, it says so; after a crash, it starts what is
    missing.

    Examples:

      foul federation up digits --clients 4

      foul federation up digits --clients 0 --host 0.0.0.0 --name fl.example.org --dir server
    """
    require_flower()
    folder = FederationFolder.at(directory)
    if folder.plan.exists():
        _require_same(folder, config, overrides, clients, named)
        plan = Plan.read(folder.plan)
    else:
        chosen = load_config(*split_config(config, overrides))
        # Not earlier: it loads data, and so torch, which no other verb of a federation needs.
        from foul.deploy.clients import choose_clients

        ids = choose_clients(chosen, clients, named or ())
        plan = prepare_server(folder, chosen, ids, host=host, names=names or (), port=port)
    start(RunningFederation(folder, plan), no_start, timeout, quiet, as_json)


def _require_same(
    folder: FederationFolder,
    config: str | None,
    overrides: list[str] | None,
    clients: int | None,
    named: list[str] | None,
) -> None:
    """What is asked for is what the folder holds; its keys and data would not fit another."""
    plan = Plan.read(folder.plan)
    other = UserError(
        f"{folder.path} holds another federation ({len(plan.clients)} clients here)",
        "Start it as it is with --dir alone, or choose another --dir.",
    )
    if config is not None:
        asked = driven_by(folder, load_config(*split_config(config, overrides)), plan.clients)
        if config_to_toml(asked) != folder.config.read_text(encoding="utf-8"):
            raise other
    if clients is not None and clients != len(plan.clients):
        raise other
    if named and set(named) != set(plan.clients):
        raise other
