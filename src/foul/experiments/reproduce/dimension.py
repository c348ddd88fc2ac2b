"""`fig-dimension`: RA and FA over the share of K and V in the latent code."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from foul.experiments.reproduce import notes
from foul.experiments.reproduce.capacity import CHANNELS, OWN, channel_trial
from foul.experiments.reproduce.charts import Series, SweepPanel, sweep
from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial
from foul.experiments.reproduce.rows import Row, rows_of
from foul.names import slug
from foul.report.aggregate import Stat
from foul.report.charts.style import looks
from foul.report.metrics import PERCENT, Unit
from foul.report.tables import Cell, Column, Line, Table, cell

SHARES = (8, 16, 24, 28)
"""Channels of K, of 32; the same models as `fig-capacity` learns."""
_ROWS = ("learned", "Retrain", "FOUL (1)+(2)", "paper's (1)+(2)")


def trials(asked: Asked) -> list[Trial]:
    """A learned model for each share; FOUL and Retrain branch from it."""
    shares = SHARES[:2] if asked.size == "smoke" else SHARES
    return [
        channel_trial(asked, source, k, source.requests(asked.forget), variants(asked.size, _ROWS))
        for source in asked.sources
        for k in shares
    ]


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A picture and a table per data set and request."""
    tables, figures = [], {}
    sources = {d.trial.source: d.trial for d in done}
    for source, first in sources.items():
        for request in first.forget:
            own = {d.trial.at["k"]: d.trial for d in done if d.trial.source == source}
            rows = {k: rows_of(trial, request, done) for k, trial in own.items()}
            title = f"{source.title}, forgetting {request}"
            figures[f"{source.key}-{slug(request)}"] = picture(rows, title)
            tables.append(Shown(f"{title}: channels of K and V, of {CHANNELS}.", table(rows)))
    return Outcome(
        tables,
        figures,
        [
            "The paper shows this figure without numbers, data set or method: there is nothing to "
            "put beside it. We vary the latent channels (decision 19), as its other ablation does; "
            "each share has its own Retrain of the same network.",
            notes.PAPER_FORM,
        ],
    )


def picture(rows: dict[float, list[Row]], title: str) -> Figure:
    """FA on the left, RA on the right, over K's channels."""
    found = looks((row.label, row.variant.method) for own in rows.values() for row in own)
    panels = []
    for key, ylabel in (("fa", "forget accuracy FA (%)"), ("ra", "retain accuracy RA (%)")):
        series = []
        for label, look in found.items():
            points = {
                k: Stat(100 * value.mean, None if value.std is None else 100 * value.std, value.n)
                for k, own in rows.items()
                for row in own
                if row.label == label and (value := row.stat(key)) is not None
            }
            series.append(Series(label, look, points))
        panels.append(SweepPanel(f"channels of K, of {CHANNELS}", ylabel, series, {}))
    return sweep(panels, title)


def table(rows: dict[float, list[Row]]) -> Table:
    """Every share and approach."""
    heads = ("K + V", "method", "FA %", "RA %", "TA %", "off by")
    lines = []
    for k, own in rows.items():
        for number, row in enumerate(own):
            cells = [Cell("" if number else f"{k:g} + {CHANNELS - k:g}"), Cell(row.label)]
            cells += [cell(row.stat(key), PERCENT) for key in ("fa", "ra", "ta")]
            cells.append(cell(row.stat("distance"), Unit()))
            lines.append(Line(cells, row.reference, first=not number))
    return Table([Column(head) for head in heads], lines)


EXPERIMENT = Experiment(
    name="fig-dimension",
    what="RA and FA over the share of K and V",
    where="Appendix, Disentanglement Efficiency",
    sets=("pacs",),
    trials=trials,
    tell=tell,
    minutes=45,
    budget="PACS64: 4 shares, each 15 rounds of learning at 17 s, 15 of Retrain at 15 s, 17 of "
    "FOUL at 8 s, 4 models judged: about 45 minutes; shares its models with fig-capacity.",
    own=OWN,
)
