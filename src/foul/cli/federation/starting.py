"""What `foul federation up` and `join` do once their folder is there."""

import typer
from rich.console import Console

from foul.cli.federation.status import show
from foul.deploy.addresses import with_port
from foul.deploy.certificates import certificate_names
from foul.deploy.federation import RunningFederation, Tell
from foul.deploy.status import describe


def start(
    federation: RunningFederation, no_start: bool, timeout: float, quiet: bool, as_json: bool
) -> None:
    """Bring it up, unless `no_start`, and say what runs and what to do next."""
    directory = federation.folder.path
    if no_start:
        typer.echo(f"Written: {directory}. `foul federation commands --systemd` prints a unit.")
        return
    already = federation.supervised
    federation.start(_teller(quiet), timeout)
    found = describe(federation)
    show(found, as_json)
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
