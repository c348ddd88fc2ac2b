"""Who did not answer in which round, and why: part of how a result was made."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from foul.report.collect import Run
from foul.runs.folder import RunFolder


def absences(run: Run) -> list[str]:
    """A sentence for each stage and client that did not answer in some round of it."""
    told = list(_sentences("learning", RunFolder(run.path).records()))
    for result in run.results:
        stage = f"{result.get('method')}, {result.get('forget')}"
        told += _sentences(stage, result.get("records", []))
    return told


def _sentences(stage: str, records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    rounds: dict[tuple[str, str], list[int]] = {}
    for record in records:
        for client, why in record.get("failures", {}).items():
            rounds.setdefault((client, why), []).append(record["round"])
    for (client, why), numbers in sorted(rounds.items()):
        plural = "s" if len(numbers) > 1 else ""
        yield f"{stage}, round{plural} {spans(numbers)}: {client} ({why})"


def spans(numbers: Iterable[int]) -> str:
    """Numbers as a person writes them: '1 to 3, 7'."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(
        str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in found
    )
