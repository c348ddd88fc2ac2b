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
    listed = read_json(file)
    if not isinstance(listed, list) or not all(isinstance(result, dict) for result in listed):
        raise UserError(f"{file} does not hold a list of results", "Move it away.")
    return listed


def read_json(file: Path) -> Any:
    """What a JSON file holds.

    Raises:
        UserError: it is not JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error})", "Delete it.") from error


def add_results(file: Path, new: Iterable[Result]) -> None:
    """Add results. One of the same method, request and seed is replaced, or completed if it is of
    the same model."""
    listed = {_key(result): result for result in read_results(file)}
    for result in new:
        old = listed.get(_key(result), {})
        # In its old place: the order of rows stays.
        listed[_key(result)] = (old if same_model(old, result) else {}) | result
    write_results(file, list(listed.values()))


def same_model(one: Result, other: Result) -> bool:
    """Whether two results of a method and a request are of one model: made with the same options,
    and from the same learned model and clients as far as both say from what."""
    known = one.get("identity"), other.get("identity")
    return one.get("options") == other.get("options") and (None in known or known[0] == known[1])


def write_results(file: Path, results: list[Result]) -> None:
    """These results and no others."""
    write_text(file, json.dumps(results, indent=1) + "\n")


def _key(result: Result) -> tuple[Any, ...]:
    return result["method"], result["forget"], result.get("seed")
