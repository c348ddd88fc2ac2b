"""`foul federation logs`."""

import re
import signal
import sys
import time
from collections import deque
from typing import Annotated

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.deploy.federation import RunningFederation
from foul.errors import UserError
from foul.names import hint


def logs(
    name: Annotated[str, typer.Argument(help="A process of `foul federation status`.")],
    directory: Folder = DEFAULT,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows.")] = False,
) -> None:
    """What a process printed."""
    federation = RunningFederation.open(directory)
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


def _print_line(line: str) -> None:
    """Flower's colours only where someone sees them."""
    shown = line if sys.stdout.isatty() else re.sub(r"\x1b\[[0-9;]*m", "", line)
    typer.echo(shown, nl=False)
