"""`foul erase check`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, print_json
from foul.erasure.receipts import Verdict, check_receipt
from foul.erasure.receipts.keys import spaced


def check(
    receipt: Annotated[
        Path,
        typer.Argument(help="A receipt (.json or .html), a folder of receipts, or a run folder."),
    ],
    key: Annotated[
        Path | None, typer.Option("--key", help="The issuer's public key (.pub.pem).")
    ] = None,
    chain: Annotated[
        Path | None, typer.Option("--chain", help="A folder with all receipts of the federation.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Check a receipt without network and without the store that issued it.

    A changed byte in the JSON or in the page is found; with --chain also a receipt that is missing,
    removed or out of order. Without --key, only that it is consistent in itself: compare the
    fingerprint with one that reached you another way.

    Exit code 0: it checks out; 1: it does not; 2: there was nothing to check.

    Examples:

      foul erase check receipt-000003.json --key hospital.pub.pem

      foul erase check receipt-000003.html --chain receipts

      foul erase check RUN
    """
    of_run = receipt / "erasure" / "receipts"
    verdict = check_receipt(of_run if of_run.is_dir() else receipt, key, chain)
    if as_json:
        print_json(verdict.to_dict())
    else:
        _show(verdict)
    if not verdict.ok:
        raise typer.Exit(1)


def _show(verdict: Verdict) -> None:
    for finding in verdict.findings:
        typer.echo(f"{'ok   ' if finding.ok else 'WRONG'}  {finding.what}: {finding.text}")
    if verdict.statement:
        told = verdict.statement
        typer.echo(f"It states: {told['event']} of {told['federation']}. {told['outcome']}")
    if verdict.key:
        typer.echo(f"Fingerprint of the key: {spaced(verdict.fingerprint)}")
    if not verdict.ok:
        typer.echo(f"{verdict.path} does not check out.")
    elif verdict.anchored:
        typer.echo(f"{verdict.path} checks out.")
    else:
        typer.echo(
            f"{verdict.path} is consistent in itself. Who signed it, this cannot tell: compare the"
            " fingerprint with one that reached you another way, or give --key."
        )
