"""The command `foul`: the table of its verbs, and how failures are shown."""

import errno
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

import typer
from rich.console import Console
from rich.markup import escape

import foul
from foul.errors import FoulError

VERBS = {
    **{
        verb: f"{verb}:{verb}"
        for verb in (
            *("run", "learn", "unlearn", "methods", "compare", "evaluate", "report", "ulira"),
            *("reproduce", "info", "export", "doctor", "node"),
        )
    },
    "predict": "export:predict",
    **{group: f"{group}.app:app" for group in ("erase", "federation")},
    **{group: f"{group}:app" for group in ("flower", "data", "config")},
}
"""Each verb's module in this package, and the command or group of commands in it."""

HELP = """[bold]Federated learning that can forget.[/bold]

A federation of clients trains one model; later a client can be erased from it.

[bold]Try it[/bold] (embedded data, three minutes): learn, forget a domain, compare with retraining.

  foul run digits --out runs/first

[bold]Step by step[/bold]

  foul learn digits --out runs/mine

  foul unlearn runs/mine --forget client:plain-2

[bold]Erasure requests[/bold], from the first step to the receipt:

  foul erase request runs/mine --client plain-2

[bold]Your own images[/bold], laid out as ROOT/DOMAIN/CLASS/*.jpg:

  foul data check ROOT

  foul run folder data.path=ROOT --forget domain:NAME --out runs/images

Every setting is a key: `foul config schema` explains them, `key=value` changes one.
Every command that prints figures takes --json."""


def program(words: Sequence[str]) -> typer.Typer:
    """The command with the verb that these words begin with, or with all of them.

    Most verbs import torch, which takes seconds: what is not asked for is not loaded.
    """
    app = typer.Typer(
        name="foul",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=HELP,
    )
    app.callback()(root)
    asked = next(iter(words), "")
    if asked != "--version":
        for verb in [asked] if asked in VERBS else VERBS:
            module, _, name = VERBS[verb].partition(":")
            found = getattr(import_module(f"foul.cli.{module}"), name)
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=verb)
            else:
                app.command(verb)(found)
    return app


def _version(show: bool) -> None:
    if show:
        typer.echo(f"foul {foul.__version__}")
        raise typer.Exit


def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Options of the whole program."""


_NO_RIGHT = "Get the right to use it, or choose another place."
_REMEDIES = {
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.EROFS: "Choose a place that can be written.",
    errno.ENOENT: "Check the path.",
    errno.EEXIST: "Choose another name, or move away what is there.",
    errno.ENOTDIR: "A part of this path is a file: choose another path.",
    errno.EISDIR: "It is a folder: name a file.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}
"""What to do about a file, by what the system says of it."""


class _Stopped(BaseException):
    """Ctrl-C or a polite kill. Not a KeyboardInterrupt: typer would answer that itself."""


def main() -> None:
    """Entry point: a failure is one clear line; exit code 2 for the user's part, 1 for ours."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        program(sys.argv[1:])(prog_name="foul")
    except FoulError as error:
        _fail(str(error), error.exit_code)
    except _Stopped:
        _fail("Stopped. What was saved is intact; the same command goes on (learn: --resume).", 2)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            _fail(
                "The disk is full. Free some space; the same command goes on (learn: --resume).", 1
            )
        if error.filename is None:
            # About no file that a user could see to: whoever mends it needs all of it.
            raise
        remedy = _REMEDIES.get(error.errno or 0, "Check the path and the disk.")
        _fail(f"{error.filename} cannot be used ({error.strerror}). {remedy}", 2)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _fail(text: str, code: int) -> None:
    Console(stderr=True, soft_wrap=True).print(
        f"[bold red]foul:[/bold red] {escape(text)}", highlight=False, emoji=False
    )
    sys.exit(code)
