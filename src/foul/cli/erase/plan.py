"""`foul erase plan`."""

from typing import Annotated, Any

import typer

from foul.cli.erase.arguments import Number, Run
from foul.cli.output import JSON_OPTION, print_json, print_table, size
from foul.erasure.plan import plan_request
from foul.erasure.requests import parse_number
from foul.erasure.store import Store


def plan(run: Run, number: Number, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Which methods can serve a request, what each would take, what will be purged and shown.

    Nothing is changed but the request's state. Estimates come from what learning took in this run;
    `within` is the factor that bytes and FLOPs are expected to keep.
    """
    made = plan_request(Store.read(run), parse_number(number))
    if as_json:
        print_json(made)
        return
    rows = [_offer_row(offer) for offer in made["methods"]]
    columns = ["method", "exact", "rounds", "traffic", "GFLOP", "minutes", "disk", "within", ""]
    print_table(f"{made['request']}: erase {', '.join(made['clients'])}", columns, rows)
    typer.echo(f"Recommended: {made['recommended']}: {made['reason']}.")
    kinds: dict[tuple[str, str], list[int]] = {}
    for item in made["purge"]:
        kinds.setdefault((item["what"], item["how"]), []).append(item["bytes"])
    print_table(
        "What becomes of what is stored",
        ["what", "how", "files", "bytes"],
        [[what, how, len(all_), size(sum(all_))] for (what, how), all_ in kinds.items()],
    )
    typer.echo("Evidence: " + "; ".join(made["evidence"]) + ".")
    if made["together"]["requests"]:
        others = ", ".join(made["together"]["requests"])
        cheaper = "is cheaper" if made["together"]["cheaper"] else "is not cheaper"
        typer.echo(f"Also waiting: {others}; serving them together {cheaper}.")
    typer.echo(f"Next: foul erase run {run} {number}")


def _offer_row(offer: dict[str, Any]) -> list[Any]:
    exact = "yes" if offer["exact"] else "no"
    if not offer["usable"]:
        return [offer["method"], exact, *["-"] * 6, offer["why_not"]]
    return [
        offer["method"],
        exact,
        offer["rounds"],
        size(offer["bytes"]),
        f"{offer['flops'] / 1e9:.1f}",
        f"{offer['minutes']:.1f}",
        size(offer["disk"]),
        offer["within"],
        " ".join(offer["options"]),
    ]
