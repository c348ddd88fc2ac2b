"""`foul federation status`."""

from typing import Annotated, Any

import typer

from foul.cli.federation.arguments import DEFAULT, Folder
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.deploy.federation import RunningFederation
from foul.deploy.status import describe


def status(directory: Folder = DEFAULT, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """What runs: processes, ports, nodes."""
    show(describe(RunningFederation.open(directory)), as_json)


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print what `describe` found."""
    if as_json:
        print_json(found)
        return
    rows = [
        [p["name"], p["state"], p["pid"] or "", p["port"] or "", p["since"] or "", p["about"]]
        for p in found["processes"]
    ]
    columns = ["process", "state", "pid", "port", "up since", "about"]
    title = (
        f"{found['folder']}: {found['role']}, door {found['door']}, "
        f"certificate until {found['certificate_until']}"
    )
    print_table(title, columns, rows)
    if found["nodes"]:
        nodes = [[n["client"], n["status"], n["node_id"]] for n in found["nodes"]]
        print_table("Nodes that the SuperLink knows", ["client", "status", "node"], nodes)
    elif found["superlink_answers"] is False:
        typer.echo("The SuperLink does not answer.")
