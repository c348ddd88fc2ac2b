"""`fig-forgetting`: accuracy and angles per round: FOUL, Retrain with and without reset; T2F."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from foul.evaluation.time_to_forget import rounds_to_reach
from foul.experiments.reproduce import notes
from foul.experiments.reproduce.charts import grid_of_lines
from foul.experiments.reproduce.methods import domain_trial, sized
from foul.experiments.reproduce.paper import ROUNDS_TO_FORGET, T2F
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial, Variant
from foul.experiments.reproduce.rows import Row, printed_rows, rows_of
from foul.names import slug
from foul.report.aggregate import Stat, stat
from foul.report.charts.lines import Line, Panel
from foul.report.charts.style import COLOURS, GREY, Look
from foul.report.curves import curve
from foul.report.metrics import PERCENT, Unit
from foul.report.tables import NONE, Cell, Column, Table, cell
from foul.report.tables import Line as TableLine

APPROACHES = (
    Variant("FOUL (1)+(2)", "foul", printed="FOUL (1)+(2)"),
    Variant("paper's (1)+(2)", "foul-paper", printed="FOUL (1)+(2)"),
    Variant("Retrain, with reset", "retrain", printed="Retrain"),
    Variant("Retrain, no reset", "continue"),
)
_NO_RESET = {"cpu": ("rounds=20", "rate=1"), "paper": (), "smoke": ()}
"""Without a reset the authors go on with the rate of learning, for as long as FOUL or longer."""

_ACCURACY = {
    "fa": ("FA, forget clients", Look(COLOURS[1], "o")),
    "ra": ("RA, retain clients", Look(COLOURS[0], "s")),
    "ta": ("TA, test", Look(GREY, "^")),
}
_ANGLES = {
    "angle_forget": ("forget clients", Look(COLOURS[1], "o")),
    "angle_retain": ("retain clients", Look(COLOURS[0], "s")),
}


def trials(asked: Asked) -> list[Trial]:
    """Four approaches, each with its whole curve."""
    rows = []
    for variant in APPROACHES:
        more = _NO_RESET[asked.size] if variant.method == "continue" else ()
        rows.append(
            sized(Variant(variant.label, variant.method, more, variant.printed), asked.size)
        )
    return [domain_trial(asked, source, tuple(rows)) for source in asked.sources]


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A picture per request, and how fast each approach forgets."""
    tables, figures = [], {}
    for trial in {d.trial.label: d.trial for d in done}.values():
        for request in trial.forget:
            rows = rows_of(trial, request, done)
            title = f"{trial.source.title}, forgetting {request}"
            figures[f"{trial.source.key}-{slug(request)}"] = picture(rows, title)
            paper = trial.source.name == "pacs" and bool(printed_rows(trial, request))
            tables.append(Shown(f"{title}: how fast FA falls.", table(rows, paper)))
    return Outcome(
        tables,
        figures,
        [
            "T2F is (learned FA - FA at r*) / r* in points per round, r* the first round within a "
            "point of the end (decision 14); the paper prints 0.32 and 0.13 per round without a "
            "unit or an end, after 50 and 75 rounds.",
            "The paper says that Retrain 'fails' to forget. With a reset it never saw the "
            "forgotten clients: its FA is what forgetting should reach (decision 16), no failure.",
            "Angles: cosine between the server's step and the clients' own cross-entropy step; "
            "a negative one says that the step works against them.",
            notes.PAPER_FORM,
            notes.LOADER,
        ],
    )


def picture(rows: Sequence[Row], title: str) -> Figure:
    """A column per approach: accuracy above, angles below."""
    retrain = next((row.mean("fa") for row in rows if row.variant.method == "retrain"), None)
    levels = [] if retrain is None else [100 * retrain]
    columns = {}
    for row in rows:
        top = [
            line
            for result in row.results
            for key, (name, look) in _ACCURACY.items()
            if (line := curve(result, key, name, look))
        ]
        below = [
            line
            for result in row.results
            for key, (name, look) in _ANGLES.items()
            if (line := curve(result, key, name, look, scale=1.0))
        ]
        angle = Panel("mean cosine with the step", (-1.05, 1.05), levels=[0.0])
        columns[row.label] = [(_ordered(top), Panel("accuracy (%)", levels=levels)), (below, angle)]
    return grid_of_lines(columns, f"{title} (dotted above: Retrain's FA at its end)")


def _ordered(lines: Sequence[Line]) -> list[Line]:
    """With FA on top of the others."""
    return sorted(lines, key=lambda line: line.label.startswith("FA"))


def table(rows: Sequence[Row], paper: bool) -> Table:
    """T2F, rounds to Retrain's FA and to the end, and the accuracies at the end."""
    heads = ["approach", "T2F", *(["paper"] if paper else []), "to its FA"]
    heads += [*(["paper"] if paper else []), "to Retrain's FA", "rounds", "FA %", "RA %"]
    lines = []
    for row in rows:
        name = row.variant.printed
        cells = [Cell(row.label), cell(row.stat("t2f"), Unit(digits=2))]
        cells += [Cell(f"{T2F[name]:.2f}" if name in T2F else NONE)] if paper else []
        cells.append(cell(rounds_to_end(row), Unit(counted=True)))
        told = ROUNDS_TO_FORGET.get(name)
        cells += [Cell(NONE if told is None else str(told))] if paper else []
        cells.append(cell(row.stat("rounds_to_retrain"), Unit(counted=True)))
        cells.append(cell(row.stat("rounds"), Unit(counted=True)))
        cells += [cell(row.stat(key), PERCENT) for key in ("fa", "ra")]
        lines.append(TableLine(cells, row.reference))
    return Table([Column(head) for head in heads], lines)


def rounds_to_end(row: Row) -> Stat | None:
    """First round within a point of the FA that the approach ends at; mean over seeds."""
    curves = [result["curve"] for result in row.results]
    return stat([rounds_to_reach(c, c[-1]["fa"]) if c else None for c in curves])


EXPERIMENT = Experiment(
    name="fig-forgetting",
    what="accuracy and angle curves: FOUL, Retrain with and without reset; T2F",
    where="Figures on Retraining and FOUL, section Time to Forget",
    sets=("pacs",),
    trials=trials,
    tell=tell,
    minutes=25,
    budget="PACS64: 30 rounds of learning at 17 s, 30 of Retrain and 20 without reset at 15 s, "
    "17 of FOUL at 8 s: about 25 minutes; shares learning and Retrain with table-main.",
)
