"""`foul erase lineage`."""

from typing import Annotated

import typer

from foul.cli.erase.arguments import Run
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.erasure.lineage import lineage as lineage_of
from foul.erasure.participation import told as rounds_told
from foul.erasure.store import Store


def lineage(
    run: Run,
    client: Annotated[str, typer.Argument(help="A client's id.")],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Which model versions a client ever touched, and what is stored about it now."""
    found = lineage_of(Store.read(run), client)
    if as_json:
        print_json(found)
        return
    rounds = rounds_told(found["rounds"])
    typer.echo(
        f"{found['client']} ({found['domain']}): {found['status']} since {found['since']}; "
        f"took part in rounds {rounds} of learning."
    )
    print_table(
        "Model versions",
        ["version", "hash", "made", "by", "it", "in service"],
        [
            [
                version["number"],
                version["hash"][:12],
                version["made"],
                f"{version['origin']} {version['method']}".strip(),
                version["how"] or "never touched it",
                "yes" if version["in_service"] else "no",
            ]
            for version in found["versions"]
        ],
    )
    stored = ", ".join(item["path"] for item in found["stored"]) or "nothing"
    typer.echo(f"Stored about it alone: {stored}.")
    for asked in found["requests"]:
        typer.echo(f"{asked['id']}: {asked['state']}")
