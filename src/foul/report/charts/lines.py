"""Lines over rounds: accuracy, angles between steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from foul.report.charts.style import INK, STYLE, Look, blank, name_lines, short


@dataclass(frozen=True)
class Line:
    """A method over rounds; a label that occurs again is another seed of it."""

    label: str
    look: Look
    rounds: Sequence[float]
    heights: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """What a line chart is about.

    Attributes:
        ylabel: the quantity and its unit.
        limits: of the vertical axis.
        levels: heights of dotted lines, such as Retrain's end.
    """

    ylabel: str
    limits: tuple[float, float] | None = (-2.0, 102.0)
    levels: Sequence[float] = ()


def draw_lines(axis: Axes, lines: Sequence[Line], panel: Panel) -> None:
    """Draw one panel; only the first line of a label is named."""
    named: set[str] = set()
    several = len({line.label for line in lines}) < len(lines)
    for line in lines:
        axis.plot(
            line.rounds,
            line.heights,
            marker=line.look.marker,
            color=line.look.colour,
            linewidth=0.9 if several else 1.6,
            markersize=2.5 if several else 3.5,
            label="_again" if line.label in named else short(line.label),
        )
        named.add(line.label)
    for level in panel.levels:
        axis.axhline(level, color=INK, linestyle=":", linewidth=1.1, alpha=0.8)
    axis.set_xlabel("round")
    axis.set_ylabel(panel.ylabel)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.limits:
        axis.set_ylim(*panel.limits)
    axis.grid()


@rc_context(STYLE)
def line_chart(lines: Sequence[Line], panel: Panel) -> Figure:
    """One panel with its legend."""
    figure, axis = blank()
    draw_lines(axis, lines, panel)
    name_lines(figure, axis)
    return figure
