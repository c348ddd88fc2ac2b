"""`foul erase rotate-key`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, print_json
from foul.erasure.receipts import check_receipt
from foul.erasure.receipts import rotate_key as make_new_key
from foul.erasure.receipts.keys import fingerprint, spaced
from foul.errors import UserError


def rotate_key(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with requests.")],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Sign with a new key from now on; the old key signs a receipt that names the new one.

    The old private key is destroyed, its public half stays. Receipts of the past keep checking out.

      foul erase rotate-key runs/mine
    """
    store = run / "erasure"
    if not store.is_dir():
        raise UserError(f"{run} has no erasure requests, so no key", "Check the path.")
    receipt = make_new_key(store)
    new = fingerprint(check_receipt(receipt.json).statement["new_key"])
    if as_json:
        print_json({"receipt": str(receipt.json), "fingerprint": new})
        return
    typer.echo(f"Fingerprint of the new key: {spaced(new)}")
    typer.echo(f"Receipt: {receipt.json}. Give away {store / 'keys' / new[:16]}.pub.pem.")
