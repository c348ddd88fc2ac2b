"""Forget and retain accuracy per round, of several methods, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from foul.report.charts.files import to_png
from foul.report.charts.lines import Line, Panel, draw_lines
from foul.report.charts.style import STYLE, Look, looks, name_lines
from foul.report.collect import LEARNED, RETRAIN

PANELS = {"fa": "forget accuracy FA (%)", "ra": "retain accuracy RA (%)"}


def curve(
    result: Mapping[str, Any], key: str, label: str, look: Look, scale: float = 100.0
) -> Line | None:
    """One figure of a result over its rounds, where it was measured."""
    points = [p for p in result.get("curve") or [] if p.get(key) is not None]
    if not points:
        return None
    return Line(label, look, [p["round"] for p in points], [scale * p[key] for p in points])


@rc_context(STYLE)
def plot_curves(results: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """FA on the left and RA on the right over rounds; Retrain's end as a dotted line."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    found = looks((result["method"], result["method"]) for result in results)
    for axis, (key, ylabel) in zip(axes, PANELS.items(), strict=True):
        # `none` has nothing but its start, which the others share.
        lines = [
            curve(result, key, result["method"], found[result["method"]])
            for result in results
            if result["method"] != LEARNED
        ]
        ends = [100 * result[key] for result in results if result["method"] == RETRAIN]
        draw_lines(axis, [line for line in lines if line], Panel(ylabel, levels=ends))
    name_lines(figure, axes[0], columns=8)
    figure.suptitle(f"{title} (dotted: Retrain's end)", fontsize=10)
    to_png(figure, path)
