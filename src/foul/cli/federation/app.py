"""`foul federation`: processes or machines that learn together, with Flower."""

import typer

from foul.cli.federation.commands import commands
from foul.cli.federation.down import down
from foul.cli.federation.join import join
from foul.cli.federation.logs import logs
from foul.cli.federation.purge import purge
from foul.cli.federation.register import register
from foul.cli.federation.renew import renew
from foul.cli.federation.status import status
from foul.cli.federation.unregister import unregister
from foul.cli.federation.up import up

app = typer.Typer(
    no_args_is_help=True, help="Run a federation of processes or machines, with Flower."
)

for verb in (up, join, register, unregister, status, logs, down, renew, purge, commands):
    app.command()(verb)
