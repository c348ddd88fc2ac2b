"""ROC of a membership attack where it matters: at few false alarms."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from foul.report.charts.style import INK, STYLE, Look, blank, name_lines, short


@dataclass(frozen=True)
class Roc:
    """False and true positive rates of an attack on one model."""

    label: str
    look: Look
    rates: Sequence[Sequence[float]]


@rc_context(STYLE)
def roc_chart(curves: Sequence[Roc], attack: str) -> Figure:
    """Both axes logarithmic, and what guessing would give as a dotted line."""
    figure, axis = blank()
    seen = [f for curve in curves for f, t in curve.rates if f > 0 and t > 0]
    low = min(0.01, *seen) if seen else 0.01
    axis.plot([low, 1], [low, 1], color=INK, linestyle=":", linewidth=1.1, label="guessing")
    for curve in curves:
        # Where either rate is 0 the logarithmic axes have no place.
        points = [(f, t) for f, t in curve.rates if f > 0 and t > 0]
        axis.plot(
            [f for f, _ in points],
            [t for _, t in points],
            color=curve.look.colour,
            drawstyle="steps-post",
            linewidth=1.4,
            label=short(curve.label),
        )
    for scale, limit in ((axis.set_xscale, axis.set_xlim), (axis.set_yscale, axis.set_ylim)):
        scale("log")
        limit(low, 1.0)
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g} %"))
        ticks.set_minor_formatter(NullFormatter())
    axis.set_title(f"attack: {attack}")
    axis.set_xlabel("false positive rate")
    axis.set_ylabel("true positive rate")
    axis.grid()
    name_lines(figure, axis)
    return figure
