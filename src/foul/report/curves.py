"""Forget and retain accuracy per round, of several methods, as a picture."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from foul.runs.atomic import replacing

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette: told apart by colour-blind readers too."""


def plot_curves(results: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """FA on the left and RA on the right over rounds; Retrain's end as a dotted line."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    panels = (("fa", "forget accuracy FA (%)"), ("ra", "retain accuracy RA (%)"))
    # `none` has nothing but its start, which the others share.
    drawn = [r for r in results if r["method"] != "none" and r.get("curve")]
    for axis, (metric, label) in zip(axes, panels, strict=True):
        for number, result in enumerate(drawn):
            points = result["curve"]
            axis.plot(
                [point["round"] for point in points],
                [100 * point[metric] for point in points],
                marker="o",
                markersize=3,
                color=COLOURS[number % len(COLOURS)],
                label=result["method"],
            )
        for result in results:
            if result["method"] == "retrain":
                axis.axhline(100 * result[metric], color="0.4", linestyle=":", linewidth=1.2)
        axis.set_xlabel("round")
        axis.set_ylabel(label)
        axis.set_ylim(-2, 102)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    if drawn:
        axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"{title} (dotted: Retrain's end)", fontsize=10)
    content = BytesIO()
    figure.savefig(content, dpi=150, format="png")
    with replacing(path) as temporary:
        temporary.write_bytes(content.getvalue())
