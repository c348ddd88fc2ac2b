"""Pictures of the experiments that the report has no chart for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import FuncFormatter, NullLocator

from foul.report.aggregate import Stat
from foul.report.charts.lines import Line, Panel, draw_lines
from foul.report.charts.style import GREY, INK, STYLE, Look, short


@dataclass(frozen=True)
class Series:
    """A figure over a swept value: means, and their deviation over seeds."""

    label: str
    look: Look
    points: Mapping[float, Stat]
    dashed: bool = False


@dataclass(frozen=True)
class SweepPanel:
    """What a panel of a sweep shows.

    Attributes:
        levels: heights and colours of dotted lines by name.
        limits: of the vertical axis; None: as high as the values need.
        logarithmic: whether the swept values are factors apart.
    """

    xlabel: str
    ylabel: str
    series: Sequence[Series]
    levels: Mapping[str, tuple[float, str]]
    limits: tuple[float, float | None] = (-2.0, 102.0)
    logarithmic: bool = False


@rc_context(STYLE)
def sweep(panels: Sequence[SweepPanel], title: str) -> Figure:
    """Panels side by side with one legend."""
    figure = Figure(figsize=(0.6 + 4.2 * len(panels), 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        _draw_sweep(axis, panel)
    _one_legend(figure, axes, columns=4)
    figure.suptitle(title, fontsize=10)
    return figure


def _draw_sweep(axis: Axes, panel: SweepPanel) -> None:
    for series in panel.series:
        places = sorted(series.points)
        axis.errorbar(
            places,
            [series.points[x].mean for x in places],
            yerr=[series.points[x].std or 0.0 for x in places],
            color=series.look.colour,
            marker=series.look.marker,
            linestyle="--" if series.dashed else "-",
            markersize=4,
            capsize=2,
            linewidth=1.5,
            label=short(series.label),
        )
    for name, (height, colour) in panel.levels.items():
        axis.axhline(height, color=colour, linestyle=":", linewidth=1.4, label=name)
    if panel.logarithmic:
        axis.set_xscale("log")
    places = sorted({x for series in panel.series for x in series.points})
    axis.set_xticks(places, [f"{x:g}" for x in places])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(panel.ylabel)
    axis.set_ylim(*panel.limits)
    axis.grid()


@rc_context(STYLE)
def grid_of_lines(
    panels: Mapping[str, Sequence[tuple[Sequence[Line], Panel]]], title: str
) -> Figure:
    """A column per name, one panel of lines over rounds above the other; a legend per row."""
    columns = list(panels)
    rows = len(next(iter(panels.values())))
    figure = Figure(figsize=(0.8 + 2.7 * len(columns), 0.6 + 2.9 * rows), layout="constrained")
    parts = figure.subfigures(rows, 1, squeeze=False)[:, 0]
    named: list[str] = []
    for number, part in reversed(list(enumerate(parts))):
        shared = _shared(panels, number)
        axes = part.subplots(1, len(columns), squeeze=False, sharey=shared)[0]
        for axis, name in zip(axes, columns, strict=True):
            lines, panel = panels[name][number]
            draw_lines(axis, lines, panel)
            axis.set_xlim(*_rounds(panels[name]))
            if number == 0:
                axis.set_title(name)
            if axis is not axes[0] and shared:
                axis.set_ylabel("")
        names = [text for axis in axes for text in axis.get_legend_handles_labels()[1]]
        if names != named:
            _one_legend(part, axes, columns=6)
        named = names
    figure.suptitle(title, fontsize=10)
    return figure


def _shared(panels: Mapping[str, Sequence[tuple[Sequence[Line], Panel]]], number: int) -> bool:
    """Whether the panels of a row show the same quantity."""
    return len({column[number][1].ylabel for column in panels.values()}) == 1


def _rounds(column: Sequence[tuple[Sequence[Line], Panel]]) -> tuple[float, float]:
    """From the beginning to the last round of a column, with a margin."""
    last = max([1.0, *(x for lines, _ in column for line in lines for x in line.rounds)])
    return -0.05 * last, 1.05 * last


@dataclass(frozen=True)
class CostPoint:
    """A method: what it cost in MB, and its forget and retain accuracy in %."""

    label: str
    look: Look
    megabytes: float
    heights: tuple[float, float]


@rc_context(STYLE)
def costs_against(points: Sequence[CostPoint], learned: tuple[float, float] | None) -> Figure:
    """Traffic against FA (left) and RA (right); dotted: Retrain, grey: the learned model.

    Methods without traffic stand at the left edge, which a logarithmic axis has not.
    """
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.subplots(1, 2)
    least = min((p.megabytes for p in points if p.megabytes > 0), default=1.0)
    free = least / 4
    ends = next((p.heights for p in points if p.look.marker == "*"), None)
    for number, (axis, name) in enumerate(
        zip(axes, ("forget accuracy FA (%)", "retain accuracy RA (%)"), strict=True)
    ):
        for point in points:
            axis.scatter(
                [point.megabytes or free],
                [point.heights[number]],
                color=point.look.colour,
                marker=point.look.marker,
                s=95 if point.look.marker == "*" else 42,
                label=short(point.label),
                zorder=3,
                clip_on=False,
            )
        if ends:
            axis.axhline(ends[number], color=INK, linestyle=":", linewidth=1.1)
        if learned:
            axis.axhline(learned[number], color=GREY, linestyle=":", label="learned (no cost)")
        _cost_axis(axis, points, free)
        axis.set_ylabel(name)
    _one_legend(figure, axes, columns=5)
    return figure


def _cost_axis(axis: Axes, points: Sequence[CostPoint], free: float) -> None:
    axis.set_xscale("log")
    most = max([p.megabytes for p in points] or [1.0])
    axis.set_xlim(free / 1.5, most * 1.8)
    places = [10.0**e for e in range(-6, 9) if 2 * free < 10.0**e <= most * 1.8]
    labelled = [(free, "0"), *((x, f"{x:g}") for x in places)]
    axis.set_xticks([x for x, _ in labelled], [text for _, text in labelled])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.set_xlabel("traffic of the whole unlearning (MB)")
    axis.grid()


def _one_legend(figure: FigureBase, axes: Sequence[Axes], columns: int) -> None:
    """A legend below the panels, with every name once."""
    found: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=min(columns, len(found)),
        )
