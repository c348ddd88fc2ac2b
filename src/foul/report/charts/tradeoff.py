"""Cost against forgetting: the paper's trade-off figure."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from foul.report.charts.style import GREY, STYLE, Look, blank, name_lines, short


@dataclass(frozen=True)
class Point:
    """A method: its cost as a share of Retrain's (of 1), and how far its FA is from Retrain's."""

    label: str
    look: Look
    share: float
    gap: float


@rc_context(STYLE)
def tradeoff(points: Sequence[Point], cost: str, learned: float | None) -> Figure:
    """Cost on a logarithmic axis, |FA - Retrain| upwards: the lower left corner is the place to be.

    The learned model costs nothing, which that axis cannot show: it is a dotted line at its gap.
    """
    figure, axis = blank()
    for point in points:
        axis.scatter(
            [100 * point.share],
            [point.gap],
            color=point.look.colour,
            marker=point.look.marker,
            s=90 if point.look.marker == "*" else 42,
            label=short(point.label),
            zorder=3,
            clip_on=False,
        )
    if learned is not None:
        axis.axhline(learned, color=GREY, linestyle=":", label="learned (no cost)")
    axis.set_xscale("log")
    costs = [100 * point.share for point in points] or [100.0]
    axis.set_xlim(min(1.0, min(costs) / 2), max(200.0, max(costs) * 2))
    axis.set_ylim(bottom=0)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(f"{cost}, % of Retrain's")
    axis.set_ylabel("|FA gap to Retrain| (points)")
    axis.grid()
    name_lines(figure, axis)
    return figure
