"""What the decoder makes of the codes: images side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from torch import Tensor

from foul.report.charts.style import STYLE, blank

ROWS = {"original": "original", "both": "z_K, z_V", "k_only": "z_K", "v_only": "z_V"}
SHOWN = 8
"""As many images as can be told apart on a phone."""


@rc_context(STYLE)
def reconstructions(images: Mapping[str, Tensor]) -> Figure | None:
    """A row per source, a column per image; nothing if there are no images."""
    rows = {name: images[name][:SHOWN].numpy() for name in ROWS if name in images}
    if not rows or not min(map(len, rows.values())):
        return None
    count = min(map(len, rows.values()))
    height, width = next(iter(rows.values())).shape[1:3]
    gap = max(1, height // 14)
    # Transparent gaps: the page shows through in whatever colour it has.
    grid = np.zeros((len(rows) * (height + gap), count * (width + gap), 4), np.uint8)
    for row, pictures in enumerate(rows.values()):
        for column in range(count):
            top, left = row * (height + gap), column * (width + gap)
            tile = grid[top : top + height, left : left + width]
            tile[..., :3], tile[..., 3] = pictures[column], 255
    figure, axis = blank(height=0.2 + 3.6 * grid.shape[0] / grid.shape[1])
    axis.imshow(grid, interpolation="none")
    axis.set_yticks(
        [n * (height + gap) + height / 2 for n in range(len(rows))], [ROWS[name] for name in rows]
    )
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return figure
