"""Arguments that several verbs of `foul federation` share."""

from pathlib import Path
from typing import Annotated

import typer

from foul.deploy.federation import RunningFederation
from foul.deploy.processes import marked
from foul.errors import UserError

DEFAULT = Path("federation")
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


def stopped(directory: Path) -> RunningFederation:
    """A server that does not run.

    Raises:
        UserError: it runs, or is a site.
    """
    federation = RunningFederation.open(directory)
    if federation.address and (federation.supervised or marked(str(federation.folder.path))):
        raise UserError(
            f"The federation in {directory} runs", f"foul federation down --dir {directory}"
        )
    return federation
