"""How charts look: one palette, one ink, one size of letters."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foul.report.collect import LEARNED, RETRAIN

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette: told apart by colour-blind readers too, on white and on black. Their
black is the ink, their yellow does not show on white."""
GREY = "#8A8A8A"
INK = "#010203"
"""Text, axes and Retrain. On a page it stands for the colour of the text around the chart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

STYLE: Any = {
    "font.size": 9.5,
    "text.color": INK,
    # Names of clients are text, whatever dollars are in them.
    "text.parse_math": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
}
"""Charts are drawn under this: `@rc_context(STYLE)`."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn, the same in every chart."""

    colour: str
    marker: str


def looks(methods: Iterable[tuple[str, str]]) -> dict[str, Look]:
    """A look for each (label, method): ink for Retrain, grey for the learned model, colours for
    the others, with another marker when they begin again."""
    found: dict[str, Look] = {}
    others = 0
    for label, method in methods:
        if method == RETRAIN:
            found[label] = Look(INK, "*")
        elif method == LEARNED:
            found[label] = Look(GREY, "o")
        else:
            found[label] = Look(COLOURS[others % len(COLOURS)], MARKERS[others // len(COLOURS) % 7])
            others += 1
    return found


def blank(width: float = 4.5, height: float = 3.4) -> tuple[Figure, Axes]:
    """An empty figure with one panel, small enough to be read on a phone."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def name_lines(figure: Figure, axis: Axes, columns: int = 3, markerscale: float = 1.0) -> None:
    """A legend below the panel, where it covers nothing."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=min(columns, len(labels)),
            markerscale=markerscale,
        )


def short(name: str, length: int = 26) -> str:
    """A name that leaves room for the chart."""
    return name if len(name) <= length else f"{name[: length - 1]}…"
