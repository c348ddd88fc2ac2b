"""The Flower ServerApp: performs a `foul` command on the federation's nodes.

The run config says which: `command` is the command line without the leading `foul`, `cwd` the
folder in which its paths count, `job` the folder of whoever waits for it (`foul.flower.job`).
"""

import contextlib
import os
import shlex
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from foul.errors import FoulError, UserError
from foul.flower.connect import serving
from foul.flower.job import Job, Outcome

VERBS = ("learn", "unlearn", "run", "compare", "evaluate", "erase")
"""Commands that ask clients."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Perform the command of the run config; what fails, fails the Flower run."""
    command, cwd, job = (str(context.run_config.get(key, "")) for key in ("command", "cwd", "job"))
    if cwd:
        os.chdir(cwd)
    with serving(grid):
        code = perform_for(Job(Path(job)), command) if job else perform(command)
    if code:
        raise FoulError(f"foul {command}: exit code {code}")


def perform_for(job: Job, command: str) -> int:
    """Perform a command for somebody who waits, and tell how it ended; its exit code."""
    try:
        with (
            job.current(),
            (job.folder / "output.txt").open("w", encoding="utf-8") as output,
            contextlib.redirect_stdout(output),
        ):
            code = perform(command)
    except FoulError as error:
        job.end(Outcome(error.exit_code, str(error)))
        raise
    except BaseException as error:
        job.end(Outcome(1, f"The ServerApp failed: {type(error).__name__}: {error}"))
        raise
    job.end(Outcome(code))
    return code


def perform(command: str) -> int:
    """Perform a command as the command line would, on the nodes; its exit code.

    Raises:
        UserError: it is no command that asks clients.
    """
    # Not earlier: the command line and torch take seconds to load.
    import click

    from foul.cli.app import program

    words = shlex.split(command)
    if not words or words[0] not in VERBS:
        raise UserError(f"'{command}' is no command for a ServerApp", f"Use {', '.join(VERBS)}.")
    try:
        # `typer.Exit` is no exception here: its code is what comes back.
        code = program(words)([*words, "engine=flower"], prog_name="foul", standalone_mode=False)
    except click.ClickException as error:
        raise UserError(error.format_message()) from error
    return int(code or 0)
