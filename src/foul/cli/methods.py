"""`foul methods`."""

import re
import sys
from inspect import cleandoc
from typing import Annotated, Any

import typer

from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.errors import UserError
from foul.names import hint
from foul.unlearning.methods import METHODS, Entry


def methods(
    name: Annotated[str | None, typer.Argument(help="Only this one, with all its options.")] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """The unlearning methods: what each does and needs; one of them with its options.

    Examples:

      foul methods

      foul methods fedosd
    """
    if name is not None and name not in METHODS:
        raise UserError(f"There is no method '{name}'", hint(name, METHODS))
    chosen = METHODS if name is None else {name: METHODS[name]}
    if as_json:
        print_json({key: _facts(entry) for key, entry in chosen.items()})
    elif name is None:
        rows = [[key, _plain(entry.idea), _needs(entry)] for key, entry in METHODS.items()]
        print_table("Methods", ["name", "idea", "needs"], rows)
    else:
        _show(name, METHODS[name])


def _show(name: str, entry: Entry) -> None:
    facts = _facts(entry)
    for text in (facts["reference"], entry.note, facts["about"], f"Needs: {_needs(entry)}"):
        if text:
            typer.echo(f"{text}\n")
    rows = [[key, value, facts["meanings"][key]] for key, value in facts["options"].items()]
    if rows:
        print_table(f"Options of {name} (KEY=VALUE)", ["option", "default", "meaning"], rows)


def _facts(entry: Entry) -> dict[str, Any]:
    """Everything there is to know, JSON-like."""
    defaults = entry.options.model_dump(mode="json")
    fields = type(entry.options).model_fields
    return {
        "idea": _plain(entry.idea),
        "about": _plain(cleandoc(entry.method.__doc__ or "")),
        "reference": _one_line(sys.modules[entry.method.__module__].__doc__ or ""),
        "requirements": entry.method(entry.options).needs.to_dict(),
        "options": defaults,
        "meanings": {key: _one_line(fields[key].description or "") for key in defaults},
    }


def _needs(entry: Entry) -> str:
    needs = entry.method(entry.options).needs.to_dict()
    return ", ".join(k.replace("_", " ") for k, v in needs.items() if v) or "nothing special"


def _plain(text: str) -> str:
    """Formulas without the markup around them."""
    return re.sub(r":math:`([^`]*)`", r"\1", text).replace(".. math:: ", "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
