"""What is in a figure, as plain lists."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle


def path(line: Line2D) -> tuple[list[float], list[float]]:
    """Where a line goes."""
    return np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()


def paths(axis: Axes) -> list[tuple[list[float], list[float]]]:
    return [path(line) for line in axis.lines]


def dots(axis: Axes) -> list[list[list[float]]]:
    """The places of every group of dots."""
    return [np.asarray(group.get_offsets()).tolist() for group in axis.collections]


def bars(axis: Axes) -> list[Rectangle]:
    return [patch for patch in axis.patches if isinstance(patch, Rectangle)]


def names(figure: Figure) -> list[str]:
    """What the legends say."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def pixels(axis: Axes) -> Any:
    """The first picture of an axis."""
    return np.asarray(axis.images[0].get_array())
