"""`foul federation down`."""

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.deploy.federation import RunningFederation
from foul.deploy.processes import marked


def down(directory: Folder = DEFAULT) -> None:
    """Stop everything; keys, certificates, the database and logs stay.

    Also what a crash left behind.
    """
    federation = RunningFederation.open(directory)
    if not federation.supervised and not marked(str(federation.folder.path)):
        federation.folder.state.unlink(missing_ok=True)
        typer.echo(f"Nothing runs in {directory}.")
        return
    federation.stop()
    typer.echo(f"Stopped. `foul federation up --dir {directory}` starts it again.")
