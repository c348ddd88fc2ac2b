"""Every figure of every result as comma-separated values."""

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from foul.report.collect import Entry

_FIRST = ("run", "forget", "method", "seed")


def to_csv(entries: Sequence[Entry]) -> str:
    """A line per method, request and seed, a column for every field that is a single value."""
    lines = [_scalars(entry) for entry in entries]
    columns = dict.fromkeys((*_FIRST, *(key for line in lines for key in line)))
    content = StringIO()
    writer = csv.DictWriter(content, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return content.getvalue()


def _scalars(entry: Entry) -> dict[str, Any]:
    told = {k: v for k, v in entry.result.items() if isinstance(v, str | int | float | bool)}
    return told | {"run": str(entry.run.path), "seed": entry.seed}
