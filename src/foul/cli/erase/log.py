"""`foul erase log`."""

from typing import Annotated, Any

from foul.cli.erase.arguments import Run
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.erasure.store import Store


def log(run: Run, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """The entries of the ledger, one line each."""
    entries = Store.read(run).entries()
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    print_table(
        f"{len(entries)} entries, their chain intact",
        ["entry", "time", "what", "about", "hash"],
        [
            [entry.number, entry.time, entry.kind, _about(entry.body), entry.hash[:12]]
            for entry in entries
        ],
    )


def _about(body: dict[str, Any]) -> str:
    keys = ("request", "requests", "job", "version", "client", "receipt", "note")
    return ", ".join(f"{key} {body[key]}" for key in keys if body.get(key) not in (None, ""))
