"""`fig-tradeoff`: traffic against forget and retain accuracy, for all methods."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from foul.experiments.reproduce import notes
from foul.experiments.reproduce.charts import CostPoint, costs_against
from foul.experiments.reproduce.methods import domain_trials
from foul.experiments.reproduce.paper import COSTS, Printed
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial
from foul.experiments.reproduce.rows import Row, printed_rows, rows_of
from foul.names import slug
from foul.report.charts.style import looks
from foul.report.collect import LEARNED
from foul.report.metrics import MEGA, PERCENT
from foul.report.tables import NONE, Cell, Column, Line, Table, cell


def trials(asked: Asked) -> list[Trial]:
    """The same as the tables of accuracy: what they ran is not run again."""
    return domain_trials(asked)


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A picture and a table per request."""
    tables, figures = [], {}
    for trial in {d.trial.label: d.trial for d in done}.values():
        for request in trial.forget:
            rows = rows_of(trial, request, done)
            title = f"{trial.source.title}, forgetting {request}"
            figures[f"{trial.source.key}-{slug(request)}"] = picture(rows, title)
            caption = f"{title}: traffic of the whole unlearning, FA and RA."
            tables.append(Shown(caption, table(rows, printed_rows(trial, request))))
    return Outcome(
        tables,
        figures,
        [
            "The paper's axis is MB per round of one client, ours everything that crossed the "
            "border until the method stopped: a cheap round that is repeated is not cheap.",
            "FA near Retrain's is the aim, not a low one (decision 16); dotted: Retrain.",
            notes.PAPER_FORM,
            notes.COSTS,
        ],
    )


def picture(rows: Sequence[Row], title: str) -> Figure:
    """FA and RA against MB."""
    found = looks((row.label, row.variant.method) for row in rows)
    points, learned = [], None
    for row in rows:
        fa, ra, spent = (row.mean(key) for key in ("fa", "ra", "bytes"))
        if fa is None or ra is None or spent is None:
            continue
        heights = (100 * fa, 100 * ra)
        if row.variant.method == LEARNED:
            learned = heights
        else:
            points.append(CostPoint(row.label, found[row.label], spent / 1e6, heights))
    figure = costs_against(points, learned)
    figure.suptitle(f"{title} (dotted: Retrain)", fontsize=10)
    return figure


def table(rows: Sequence[Row], printed: Mapping[str, Printed]) -> Table:
    """What the picture shows, and the paper's figures where it has some."""
    heads = ["method", "MB", "FA %", "RA %"]
    heads += ["paper MB a round", "paper FA", "paper RA"] if printed else []
    lines = []
    for row in rows:
        cells = [Cell(row.label), cell(row.stat("bytes"), MEGA)]
        cells += [cell(row.stat(key), PERCENT) for key in ("fa", "ra")]
        if printed:
            told, cost = printed.get(row.variant.printed), COSTS.get(row.variant.printed)
            cells.append(Cell(NONE if cost is None else f"{cost.megabytes:.2f}"))
            cells += [
                Cell(f"{told.fa:.2f}" if told else NONE),
                Cell(f"{told.ra:.2f}" if told else NONE),
            ]
        lines.append(Line(cells, row.reference))
    return Table([Column(head) for head in heads], lines)


EXPERIMENT = Experiment(
    name="fig-tradeoff",
    what="traffic against FA and RA for all methods",
    where="Figure 'Comparison of communication cost'",
    sets=("pacs", "terra-incognita"),
    trials=trials,
    tell=tell,
    minutes=60,
    budget="What table-main runs on one data set, and nothing more: about 60 minutes on PACS64, "
    "seconds if table-main has run.",
)
