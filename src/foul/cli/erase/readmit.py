"""`foul erase readmit`."""

from typing import Annotated

import typer

from foul.cli.erase.arguments import Run
from foul.cli.output import JSON_OPTION, print_told
from foul.erasure.readmission import readmit as readmit_client
from foul.erasure.store import Store


def readmit(
    run: Run,
    client: Annotated[str, typer.Argument(help="An erased client.")],
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why it may take part again.")] = "",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Let an erased client take part again. It is an entry of its own, with a receipt.

    The model does not know it again until it learns: foul erase relearn RUN
    """
    back = readmit_client(Store.read(run), client, reason)
    text = f"{back.id} may take part again. Learn with it: foul erase relearn {run}"
    print_told({"client": back.id, "status": back.status, "since": back.since}, text, as_json)
