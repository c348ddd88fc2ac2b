"""`foul federation`."""

import getpass
import re
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from foul.cli.arguments import Quiet, split_config
from foul.cli.output import JSON_OPTION, print_json, print_table, size
from foul.config import load_config
from foul.config.load import config_to_toml
from foul.deploy.addresses import LOCAL, split_port, with_port
from foul.deploy.certificates import certificate_names, renew_server_certificate, valid_until
from foul.deploy.commands import nginx_server, shell_commands, systemd_unit
from foul.deploy.federation import PATIENCE, RunningFederation, Tell
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan
from foul.deploy.prepare import (
    driven_by,
    prepare_server,
    prepare_site,
    require_client_id,
    require_flower,
)
from foul.deploy.processes import marked
from foul.deploy.purge import purge_database
from foul.deploy.status import describe
from foul.errors import UserError
from foul.names import hint

app = typer.Typer(
    no_args_is_help=True, help="Run a federation of processes or machines, with Flower."
)

ConfigName = Annotated[
    str | None, typer.Argument(help="A TOML file or a shipped configuration; default: digits.")
]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change.")
]
Folder = Annotated[Path, typer.Option("--dir", "-d", help="The folder of the federation.")]
Patience = Annotated[float, typer.Option("--timeout", help="Seconds until all must be up.")]
NoStart = Annotated[
    bool, typer.Option("--no-start", help="Only write the folder; systemd will start it.")
]
DEFAULT = Path("federation")


@app.command()
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
    _start(RunningFederation(folder, plan), no_start, timeout, quiet, as_json)


@app.command()
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
    _start(federation, no_start, timeout, quiet, as_json)
    if not as_json and not federation.has_joined(own):
        typer.echo(
            f"Send {federation.folder.key(own)}.pub to the server. There:\n"
            f"  foul federation register {own} {own}.pub --dir SERVER-FOLDER"
        )


@app.command()
def register(
    client: Annotated[str, typer.Argument(help="The client that the node will serve.")],
    key: Annotated[Path, typer.Argument(help="The public key of its node (key.pub).")],
    directory: Folder = DEFAULT,
) -> None:
    """Let a site's node in: from now on, the owner of this key is this client."""
    federation = _open(directory)
    require_client_id(client)
    if not key.is_file():
        raise UserError(f"{key} is not there", "It is nodes/ID/key.pub of the site's folder.")
    number = federation.register(key, client)
    typer.echo(f"Node {number} may serve client {client}.")


@app.command()
def unregister(
    client: Annotated[str, typer.Argument(help="The client whose node must stay out.")],
    directory: Folder = DEFAULT,
) -> None:
    """Keep a node out: its key is never accepted again."""
    _open(directory).unregister(client)
    typer.echo(f"The node of client {client} is no longer let in.")


@app.command()
def status(directory: Folder = DEFAULT, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """What runs: processes, ports, nodes."""
    _show(describe(_open(directory)), as_json)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(help="A process of `foul federation status`.")],
    directory: Folder = DEFAULT,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows.")] = False,
) -> None:
    """What a process printed."""
    federation = _open(directory)
    known = ["supervisor", *(process.name for process in federation.plan.processes)]
    if name not in known:
        raise UserError(f"There is no process '{name}'", hint(name, known))
    path = federation.folder.log(name)
    path.touch()
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in deque(file, maxlen=lines):
            _print_line(line)
        if follow:
            # Ctrl-C is how this ends; nothing needs saving.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        while follow:
            line = file.readline()
            if line:
                _print_line(line)
            else:
                time.sleep(0.2)


@app.command()
def down(directory: Folder = DEFAULT) -> None:
    """Stop everything; keys, certificates, the database and logs stay.

    Also what a crash left behind.
    """
    federation = _open(directory)
    if not federation.supervised and not marked(str(federation.folder.path)):
        federation.folder.state.unlink(missing_ok=True)
        typer.echo(f"Nothing runs in {directory}.")
        return
    federation.stop()
    typer.echo(f"Stopped. `foul federation up --dir {directory}` starts it again.")


@app.command()
def renew(directory: Folder = DEFAULT) -> None:
    """A new server certificate for the same names; sites notice nothing."""
    federation = _stopped(directory)
    renew_server_certificate(federation.folder.certificates)
    until = valid_until(federation.folder.certificates / "server.crt")
    typer.echo(f"The server's certificate is valid until {until:%Y-%m-%d}.")


@app.command()
def purge(directory: Folder = DEFAULT) -> None:
    """Remove messages of runs that are over, and their rests, from the SuperLink's database.

    Flower deletes messages when they have been fetched, but their bytes stay in the file.
    `foul erase run` does this by itself.
    """
    before, after = purge_database(_stopped(directory).folder.database)
    typer.echo(f"The SuperLink's database: {size(before)}, now {size(after)}.")


@app.command()
def commands(
    directory: Folder = DEFAULT,
    systemd: Annotated[bool, typer.Option("--systemd", help="A unit for systemd instead.")] = False,
    nginx: Annotated[
        str | None,
        typer.Option("--nginx", metavar="NAME", help="A server for nginx instead of our proxy."),
    ] = None,
) -> None:
    """Print what runs here as commands, to start it by other means."""
    federation = _open(directory)
    if systemd:
        typer.echo(systemd_unit(federation.folder, getpass.getuser()))
    elif nginx is not None:
        typer.echo(nginx_server(federation, nginx))
    else:
        typer.echo(shell_commands(federation))


def _open(directory: Path) -> RunningFederation:
    return RunningFederation.open(directory)


def _stopped(directory: Path) -> RunningFederation:
    """A server that does not run.

    Raises:
        UserError: it runs, or is a site.
    """
    federation = _open(directory)
    if federation.address and (federation.supervised or marked(str(federation.folder.path))):
        raise UserError(
            f"The federation in {directory} runs", f"foul federation down --dir {directory}"
        )
    return federation


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


def _start(
    federation: RunningFederation, no_start: bool, timeout: float, quiet: bool, as_json: bool
) -> None:
    directory = federation.folder.path
    if no_start:
        typer.echo(f"Written: {directory}. `foul federation commands --systemd` prints a unit.")
        return
    already = federation.supervised
    federation.start(_teller(quiet), timeout)
    found = describe(federation)
    _show(found, as_json)
    if as_json:
        return
    if already:
        typer.echo(f"It was up already; `foul federation down --dir {directory}` stops it.")
    elif federation.is_server:
        typer.echo(_next_steps(federation))


def _teller(quiet: bool) -> Tell:
    console = Console(stderr=True, quiet=quiet, soft_wrap=True)
    return lambda text: console.print(text, markup=False, highlight=False)


def _next_steps(federation: RunningFederation) -> str:
    path, port = federation.folder.path, federation.ports["proxy"]
    trial = bool(federation.plan.clients)
    server = "server" if trial else str(path)
    own = certificate_names(federation.folder.certificates / "server.crt")[0]
    name = "SERVER" if trial else own
    lines = [
        "",
        f"Use it:   foul learn {federation.folder.config} --out runs/flower",
        "          foul unlearn runs/flower --forget client:ID",
        f"Stop it:  foul federation down --dir {path}",
        "",
        "On other machines (docs/deploy.md); sites need a copy of the server's certs/ca.crt:",
        f"  site    foul federation join {with_port(name, port)} CONFIG --client ID"
        " --data FOLDER --ca ca.crt",
        f"  server  foul federation register ID ID.pub --dir {server}",
        f"Every process as a command: foul federation commands --dir {path}",
    ]
    if trial:
        up = "up CONFIG --clients 0 --host 0.0.0.0 --name SERVER --dir server"
        lines.insert(6, f"  server  foul federation {up}")
    return "\n".join(lines)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        [p["name"], p["state"], p["pid"] or "", p["port"] or "", p["since"] or "", p["about"]]
        for p in found["processes"]
    ]
    columns = ["process", "state", "pid", "port", "up since", "about"]
    title = (
        f"{found['folder']}: {found['role']}, door {found['door']}, "
        f"certificate until {found['certificate_until']}"
    )
    print_table(title, columns, rows)
    if found["nodes"]:
        nodes = [[n["client"], n["status"], n["node_id"]] for n in found["nodes"]]
        print_table("Nodes that the SuperLink knows", ["client", "status", "node"], nodes)
    elif found["superlink_answers"] is False:
        typer.echo("The SuperLink does not answer.")


def _print_line(line: str) -> None:
    """Flower's colours only where someone sees them."""
    shown = line if sys.stdout.isatty() else re.sub(r"\x1b\[[0-9;]*m", "", line)
    typer.echo(shown, nl=False)
