"""`foul erase serve`."""

import signal
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from foul.erasure.dashboard import open_dashboard
from foul.erasure.dashboard.access import LOOPBACK


def serve(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders with requests.")
    ],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")
    ] = 8420,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines reach it, unencrypted.")
    ] = False,
) -> None:
    """Look at federations in a browser: requests, due dates, receipts, curves.

    Read only, but for filing a request. Only who has the printed address can open it, and only from
    this machine. Ctrl-C ends it.

    Examples:

      foul erase serve runs/mine

      foul erase serve runs/north runs/south --port 0
    """
    dashboard = open_dashboard(runs, host, port, allow_remote)
    with dashboard:
        if host not in LOOPBACK:
            typer.echo(
                f"Warning: other machines can reach {host}, and whoever listens on the way reads"
                " the token with the rest.",
                err=True,
            )
        for number in (signal.SIGINT, signal.SIGTERM):
            # `shutdown` waits for the loop that this signal has interrupted.
            signal.signal(number, lambda *_: Thread(target=dashboard.shutdown).start())
        typer.echo(f"Open {dashboard.url}")
        typer.echo("Ctrl-C ends it.")
        dashboard.serve_forever()
