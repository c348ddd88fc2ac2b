"""`foul erase policy`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, print_json
from foul.erasure.policy import Policy, load_policy, policy_text
from foul.erasure.store import Store
from foul.runs.folder import RunFolder


def policy(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run folder; none: the default.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the policy as TOML, every key explained: RUN/erasure/policy.toml, or the default.

    foul erase policy > RUN/erasure/policy.toml
    """
    found = Policy() if run is None else load_policy(Store(RunFolder.open(run)).path)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        typer.echo(policy_text(found), nl=False)
