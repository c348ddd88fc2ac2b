"""Who took part in which round, from a run's records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def participation(records: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    """Client -> the spans of rounds in which it answered.

    A record names who was asked (`costs`) and who did not answer as it should (`failures`).
    """
    rounds: dict[str, list[int]] = {}
    for record in records:
        for client in record["costs"]:
            if client not in record["failures"]:
                rounds.setdefault(client, []).append(record["round"])
    return {client: spans(numbers) for client, numbers in sorted(rounds.items())}


def spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each unbroken row in a list of rising numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def told(found: Iterable[Sequence[int]]) -> str:
    """Spans as people write them: `1-12, 14`."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "none"
