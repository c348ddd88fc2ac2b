"""results.json: one object per method, request and seed."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from foul.errors import UserError
from foul.runs.atomic import write_text

Result = dict[str, Any]


def read_results(file: Path) -> list[Result]:
    """The results in this file; none if there is no file yet.

    Raises:
        UserError: it is not a list of results.
    """
    if not file.is_file():
        return []
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error})", "Delete it.") from error
    return list(listed)


def add_results(file: Path, new: Iterable[Result]) -> None:
    """Add results; one of the same method, request and seed is replaced."""
    added = list(new)
    replaced = {_key(result) for result in added}
    kept = [result for result in read_results(file) if _key(result) not in replaced]
    write_text(file, json.dumps([*kept, *added], indent=1) + "\n")


def _key(result: Result) -> tuple[Any, ...]:
    return result["method"], result["forget"], result.get("seed")
