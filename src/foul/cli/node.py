"""`foul node`."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from foul.cli.arguments import split_config
from foul.config import load_config
from foul.errors import UserError
from foul.flower.holdings import own_data, share_of
from foul.flower.node import Node, worker_maker


def node(
    config: Annotated[
        str | None,
        typer.Argument(help="A TOML file or a shipped configuration: image size, device, seed."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change.")
    ] = None,
    client: Annotated[str, typer.Option("--client", "-c", help="The id of this client.")] = "",
    socket: Annotated[
        Path | None, typer.Option("--socket", help="Where to listen for the SuperNode.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="This client's images: ROOT/CLASS/* or one ROOT/DOMAIN/CLASS."),
    ] = None,
    domain: Annotated[
        str, typer.Option("--domain", help="Name of the domain of ROOT/CLASS/*.")
    ] = "",
    state: Annotated[
        Path | None, typer.Option("--state", help="Its own files; default: beside the socket.")
    ] = None,
) -> None:
    """Serve one client of a Flower federation: hold its data, perform the server's tasks.

    It stays warm beside a SuperNode, which passes messages on through the socket. Data never leaves
    it. Without --data it takes the client's share of the configuration, for trials.

    Examples:

      foul node --client clinic-3 --data /data/scans --socket /run/foul/clinic-3.sock

      foul node digits --client plain-0 --socket nodes/plain-0.sock threads=1
    """
    name, texts = split_config(config, overrides)
    if not client or socket is None:
        raise UserError("A node needs --client and --socket", "Say whom it serves and where.")
    chosen, place = load_config(name or "digits", texts), socket.expanduser().absolute()
    own = (state or place.parent / f"state-{client}").expanduser().absolute()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    holding = (
        share_of(chosen, client) if data is None else own_data(chosen, client, data, domain, own)
    )
    make = worker_maker(chosen, holding, own / "features")
    with Node(holding, place, make) as running:
        samples = len(holding.client.train)
        typer.echo(f"node {client}: ready ({samples} samples, domain {holding.client.domain})")
        sys.stdout.flush()
        running.serve()


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
