"""Accuracy per client: who was forgotten, and who paid for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foul.report.charts.style import GREY, INK, STYLE, Look, blank, name_lines, short


@dataclass(frozen=True)
class Bar:
    """Accuracies of a client in %; what was not measured is None."""

    client: str
    forget: bool
    method: float | None
    learned: float | None
    retrain: float | None


@rc_context(STYLE)
def client_bars(bars: Sequence[Bar], method: str, look: Look) -> Figure:
    """A bar per client for the method, a dot for the learned model, a stroke for Retrain."""
    figure, axis = blank(height=1.4 + 0.18 * len(bars))
    for forget, what in ((True, "to forget"), (False, "to retain")):
        places = [n for n, bar in enumerate(bars) if bar.forget == forget]
        if places:
            axis.barh(
                places,
                [bars[n].method or 0.0 for n in places],
                height=0.72,
                color=look.colour,
                alpha=1.0 if forget else 0.5,
                hatch="////" if forget else "",
                edgecolor="#FFFFFF80" if forget else "none",
                label=f"{short(method)}, {what}",
            )
    _marks(axis, [bar.learned for bar in bars], "o", GREY, "learned")
    _marks(axis, [bar.retrain for bar in bars], "|", INK, "retrain")
    axis.set_yticks(range(len(bars)), [short(bar.client) for bar in bars], fontsize=8.5)
    for tick, bar in zip(axis.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if bar.forget else "normal")
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.set_xlim(0, 100)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("accuracy on training data (%)")
    axis.grid(axis="x")
    name_lines(figure, axis, columns=2)
    return figure


def _marks(
    axis: Axes, heights: Sequence[float | None], marker: str, colour: str, label: str
) -> None:
    known = [(x, n) for n, x in enumerate(heights) if x is not None]
    if known:
        axis.plot(
            [x for x, _ in known],
            [n for _, n in known],
            linestyle="none",
            marker=marker,
            markersize=9 if marker == "|" else 4,
            markeredgewidth=2 if marker == "|" else 0,
            color=colour,
            label=label,
            clip_on=False,
            zorder=4,
        )
