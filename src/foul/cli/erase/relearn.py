"""`foul erase relearn`."""

from typing import Annotated

import typer

from foul.cli.arguments import Quiet
from foul.cli.erase.arguments import Machine, Run, machine_config
from foul.cli.output import JSON_OPTION, print_told
from foul.cli.remote import handed_over, shown
from foul.erasure.relearning import relearn as go_on_learning
from foul.erasure.store import Store
from foul.learning.going_on import RATE


def relearn(
    run: Run,
    machine: Machine = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds.")] = 5,
    rate: Annotated[
        float, typer.Option("--rate", help="Local rates as a share of the learning stage's.")
    ] = RATE,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Go on learning from the model in service, with everybody who may take part.

    Erased clients take no part; readmitted ones do. Killed, the same command goes on.
    """
    store = Store.open(run)
    config = machine_config(store, machine)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        version = go_on_learning(store, rounds, rate, display, config)
    text = f"Version {version.number} ({version.hash[:12]}) is in service."
    print_told(version.to_dict(), text, as_json)
