"""`foul erase audit`."""

from typing import Annotated, Any

import typer
from rich.text import Text

from foul.cli.arguments import Quiet
from foul.cli.erase.arguments import Run
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.cli.progress import ProgressDisplay
from foul.erasure.audit import audit as audit_store
from foul.erasure.store import Store


def audit(run: Run, quiet: Quiet = False, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Check the ledger, the model in service, tombstones, receipts, and that nothing was left.

    Exit code 2 if anything is wrong.
    """
    with ProgressDisplay(quiet) as display:
        found = audit_store(Store.read(run), display)
    if as_json:
        print_json([finding.to_dict() for finding in found])
    else:
        rows: list[list[Any]] = [
            [f.what, "ok" if f.ok else Text("wrong", style="bold red"), f.told] for f in found
        ]
        print_table(f"{run}: audit", ["", "", "found"], rows)
    if not all(finding.ok for finding in found):
        raise typer.Exit(2)
