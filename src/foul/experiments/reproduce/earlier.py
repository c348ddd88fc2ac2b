"""Results of an earlier command, on this machine or another, from the JSON file that it wrote."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foul.errors import UserError
from foul.experiments.store import ResultStore

_REMEDY = "Give the JSON file of a table or figure: runs/reproduce/NAME/NAME-DATA.json."


@dataclass(frozen=True)
class Earlier:
    """A result that need not be made again.

    Attributes:
        origin: the file, version and day that it is from.
        learned: accuracy of the model that it branched from, by split.
    """

    origin: str
    learned: Mapping[str, Any]
    result: Mapping[str, Any]


def read_earlier(files: Iterable[Path]) -> dict[str, Earlier]:
    """The results of these files by the hash of what made them; of two, the first is taken.

    Raises:
        UserError: a file is not there or does not come from `foul reproduce`.
    """
    found: dict[str, Earlier] = {}
    for file in files:
        if not file.is_file():
            raise UserError(f"There is no file {file}", _REMEDY)
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            stamp = f"{file.name} (foul {told['version']}, {told['date']})"
            for trial in told["trials"]:
                learned = trial["learned"]["accuracy"]
                for key, result in trial["results"].items():
                    found.setdefault(key, Earlier(result.get("origin", stamp), learned, result))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(
                f"{file} is not what `foul reproduce` writes ({type(error).__name__}: {error})",
                _REMEDY,
            ) from error
    return found


def take(
    earlier: Mapping[str, Earlier],
    keys: Sequence[str],
    learned: Mapping[str, Any],
    store: ResultStore,
) -> None:
    """Put what is known of these keys into the store, marked with its origin.

    Raises:
        UserError: it was made on other data than those of the model that was learned here.
    """
    for key in keys:
        known = earlier.get(key)
        if known is None or store.get(key) is not None:
            continue
        there, here = _samples(known.learned), _samples(learned)
        if there != here:
            raise UserError(
                f"{known.origin} was made on other data: {there} samples, here {here}",
                "Leave it out, or give the data that it was made on.",
            )
        store.put(key, {**known.result, "origin": known.origin})


def _samples(learned: Mapping[str, Any]) -> dict[str, int]:
    """Samples of each split."""
    return {split: told["all"]["samples"] for split, told in sorted(learned.items())}
