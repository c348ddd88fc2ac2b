"""Codes in two dimensions, coloured by what they may tell."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from foul.report.charts.style import COLOURS, MARKERS, STYLE, blank, name_lines, short

NAMED = 12
"""More groups than these have a colour, but no name in a legend."""


@rc_context(STYLE)
def embedding(
    places: Sequence[Sequence[float]], groups: Sequence[int], names: Sequence[str], title: str
) -> Figure:
    """A dot per sample at its place, in the colour of its group. The axes mean nothing."""
    figure, axis = blank(height=3.6)
    where, which = np.asarray(places, dtype=float).reshape(-1, 2), np.asarray(groups)
    spectrum = colormaps["turbo"](np.linspace(0.05, 0.95, max(1, len(names))))
    for number, name in enumerate(names):
        own = where[which == number]
        few = len(names) <= NAMED
        axis.scatter(
            own[:, 0],
            own[:, 1],
            s=9,
            color=COLOURS[number % len(COLOURS)] if few else [spectrum[number]],
            marker=MARKERS[number // len(COLOURS) % len(MARKERS)] if few else "o",
            label=short(name, 14) if few else "_unnamed",
            linewidths=0,
            # Thousands of dots as shapes would make a page of megabytes.
            rasterized=True,
        )
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title)
    axis.spines[:].set_visible(True)
    axis.spines[:].set_alpha(0.3)
    name_lines(figure, axis, columns=5, markerscale=1.8)
    return figure
