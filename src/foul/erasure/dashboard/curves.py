"""Accuracy per round, of learning and of each unlearning, as charts inside a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from markupsafe import Markup

from foul.erasure.records import Job
from foul.erasure.state import State
from foul.report.charts.files import to_svg
from foul.report.charts.lines import Line, Panel, line_chart
from foul.report.charts.style import COLOURS, Look

_DRAWING = Lock()
"""Matplotlib's settings are of the whole process; pages are made by several threads."""

Series = tuple[str, tuple[float, ...], tuple[float, ...]]
"""A line's name, its rounds, its heights in percent."""

CURVES = {
    "fa": "on the erased clients",
    "ra": "on the others",
    "forget_train": "on the erased clients",
    "validation_accuracy": "on the others (validation)",
}
"""Figures of a round, in the order of preference: the first of each pair that was measured."""


@dataclass(frozen=True)
class Picture:
    """A chart and what it shows."""

    title: str
    caption: str
    svg: Markup


def learning_picture(records: Sequence[Mapping[str, Any]]) -> Picture | None:
    """Validation accuracy of the model that each learning round started from."""
    own = [record for record in records if record.get("stage") == "learning"]
    line = _series("validation accuracy", own, "validation_accuracy")
    if line is None:
        return None
    caption = "Accuracy of the model that a round started from, on validation data of all clients."
    return Picture("Learning", caption, _drawn((line,), "learning", caption))


def job_pictures(state: State) -> Iterator[Picture]:
    """One chart for each job whose rounds were measured."""
    for job in state.jobs.values():
        picture = job_picture(job)
        if picture:
            yield picture


def job_picture(job: Job) -> Picture | None:
    """Accuracy per round of one unlearning."""
    points = job.result.get("curve") or []
    lines: list[Series] = []
    for key, name in CURVES.items():
        line = _series(name, points, key)
        if line and all(name.split(" (")[0] != other[0].split(" (")[0] for other in lines):
            lines.append(line)
    if not lines:
        return None
    requests = ", ".join(f"R-{number:04d}" for number in job.requests)
    caption = f"Accuracy per round of {job.method} for {requests}."
    return Picture(f"Job {job.number}", caption, _drawn(tuple(lines), f"job-{job.number}", caption))


def _series(name: str, points: Sequence[Mapping[str, Any]], key: str) -> Series | None:
    there = [point for point in points if point.get(key) is not None]
    if not there:
        return None
    rounds = tuple(float(point["round"]) for point in there)
    return name, rounds, tuple(100 * float(point[key]) for point in there)


@lru_cache(maxsize=64)
def _drawn(lines: tuple[Series, ...], name: str, caption: str) -> Markup:
    looks = [Look(COLOURS[position % len(COLOURS)], "o") for position in range(len(lines))]
    drawn = [
        Line(label, look, rounds, heights)
        for (label, rounds, heights), look in zip(lines, looks, strict=True)
    ]
    with _DRAWING:
        return to_svg(line_chart(drawn, Panel("accuracy (%)")), name, caption)
