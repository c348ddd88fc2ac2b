"""`fig-coefficients`: losses and convergence of L2U under each coefficient."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from foul.experiments.reproduce.capacity import sweep_rounds
from foul.experiments.reproduce.charts import grid_of_lines
from foul.experiments.reproduce.paper import CONVERGED_ROUNDS
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial
from foul.experiments.reproduce.sizes import config_for
from foul.report.aggregate import stat
from foul.report.charts.lines import Line, Panel
from foul.report.charts.style import COLOURS, MARKERS, Look
from foul.report.metrics import Unit
from foul.report.tables import Cell, Column, Table, cell
from foul.report.tables import Line as TableLine

COEFFICIENTS = {
    "alpha_rec": "generator/rec",
    "alpha_k": "mid/k",
    "alpha_v": "generator/v",
    "alpha_gtc": "mid/gtc",
}
"""The paper's coefficients, and the term of the records that each is multiplied into."""
NAMES = {"alpha_rec": "L_rec", "alpha_k": "L_K", "alpha_v": "L_V", "alpha_gtc": "L_gtc"}
VALUES = (0.1, 0.5, 1.0)
"""The last is the others' value: one model serves all four sweeps there."""
_LIMITS = {"alpha_v": (-0.03, 1.03)}
"""The hinge L_V is between 0 and 1; the others have no bounds to draw them in."""
NEAR = 0.01


def trials(asked: Asked) -> list[Trial]:
    """One coefficient at a time, the others 1."""
    ones = dict.fromkeys(COEFFICIENTS, 1.0)
    values = VALUES[1:] if asked.size == "smoke" else VALUES
    found: dict[tuple[float, ...], Trial] = {}
    for source in asked.sources:
        for name in COEFFICIENTS:
            for value in values:
                at = ones | {name: value}
                key = (float(list(asked.sources).index(source)), *at.values())
                if key not in found:
                    changes: dict[str, Any] = {f"learning.l2u.{k}": v for k, v in at.items()}
                    # Without patience: convergence is what is looked at.
                    changes["learning.patience"] = 0
                    config = config_for(
                        source, asked.size, sweep_rounds(asked.size) | changes | asked.overrides
                    )
                    label = f"{source.title}, {name} {value:g}" if value != 1 else source.title
                    found[key] = Trial(label, source, config, at=at)
    return list(found.values())


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A picture and a table per data set."""
    tables, figures = [], {}
    for source in dict.fromkeys(d.trial.source for d in done):
        own = [d for d in done if d.trial.source == source]
        figures[source.key] = picture(own, source.title)
        tables.append(
            Shown(
                f"{source.title}: losses of the last round without their coefficients, validation "
                "accuracy before it, and after how many rounds it was within a point of that.",
                table(own),
            )
        )
    return Outcome(
        tables,
        figures,
        [
            "The paper shows curves without numbers, on VLCS, and says that they converge within "
            f"{CONVERGED_ROUNDS} rounds.",
            "L_V is nearly satisfied from the start: its hinge looks at the total variance over "
            "all dimensions (decision 23); a low L_V says little about disentanglement.",
            "L_K is negative where prototypes are far apart: its denominator leaves the own class "
            "out (decision 7). The joint head's loss keeps its weight 1.",
        ],
    )


def loss_curve(done: Done, name: str) -> tuple[list[int], list[float]]:
    """Rounds and values of a loss, without its coefficient."""
    weight, term = done.trial.at[name], COEFFICIENTS[name]
    rounds = [r for r in done.learned["rounds"] if term in r["losses"]]
    told = [(r["round"], r["losses"][term] / weight) for r in rounds]
    return [n for n, _ in told], [value for _, value in told]


def accuracy_curve(done: Done) -> tuple[list[int], list[float]]:
    """Validation accuracy in % of the model that each round started from, where it was measured."""
    told = [
        (r["round"] - 1, 100 * r["validation_accuracy"])
        for r in done.learned["rounds"]
        if r["validation_accuracy"] is not None
    ]
    return [n for n, _ in told], [value for _, value in told]


def of(done: Sequence[Done], name: str) -> list[Done]:
    """The trials of one sweep: the other coefficients are 1."""
    return sorted(
        (d for d in done if all(v == 1 for k, v in d.trial.at.items() if k != name)),
        key=lambda d: d.trial.at[name],
    )


def picture(done: Sequence[Done], title: str) -> Figure:
    """A column per coefficient: its own loss above, validation accuracy below."""
    values = sorted({d.trial.at[name] for name in COEFFICIENTS for d in done})
    look = {v: Look(COLOURS[n], MARKERS[n]) for n, v in enumerate(values)}
    columns = {}
    for name in COEFFICIENTS:
        above, below = [], []
        for d in of(done, name):
            value = d.trial.at[name]
            above.append(Line(f"coefficient {value:g}", look[value], *loss_curve(d, name)))
            below.append(Line(f"coefficient {value:g}", look[value], *accuracy_curve(d)))
        columns[name] = [
            (above, Panel(f"{NAMES[name]} (unweighted)", _LIMITS.get(name))),
            (below, Panel("validation accuracy (%)")),
        ]
    return grid_of_lines(columns, title)


def converged(rounds: Sequence[Mapping[str, Any]]) -> int | None:
    """After how many rounds validation accuracy was within a point of the last known one; None
    without any. A round's record tells the accuracy of the model that it started from."""
    told = [(r["round"] - 1, r["validation_accuracy"]) for r in rounds]
    known = [(n, accuracy) for n, accuracy in told if accuracy is not None]
    if not known:
        return None
    end = known[-1][1]
    return next(int(n) for n, accuracy in known if abs(accuracy - end) <= NEAR + 1e-9)


def table(done: Sequence[Done]) -> Table:
    """Every coefficient and value."""
    heads = ("changed", "value", *NAMES.values(), "validation %", "converged")
    lines = []
    for name in COEFFICIENTS:
        for number, value in enumerate(sorted({d.trial.at[name] for d in of(done, name)})):
            own = [d for d in of(done, name) if d.trial.at[name] == value]
            cells = [Cell("" if number else name), Cell(f"{value:g}")]
            for loss in COEFFICIENTS:
                last = stat(curve[1][-1] for d in own if (curve := loss_curve(d, loss))[1])
                cells.append(cell(last, Unit(digits=3)))
            ends = stat(curve[1][-1] for d in own if (curve := accuracy_curve(d))[1])
            cells.append(cell(ends, Unit()))
            reached = stat(converged(d.learned["rounds"]) for d in own)
            cells.append(cell(reached, Unit(counted=True)))
            lines.append(TableLine(cells, first=not number))
    return Table([Column(head) for head in heads], lines)


EXPERIMENT = Experiment(
    name="fig-coefficients",
    what="L2U losses and convergence under each alpha",
    where="Appendix, Evaluations on convergence of learning phase",
    sets=("vlcs",),
    trials=trials,
    tell=tell,
    minutes=40,
    budget="PACS64: 9 models of 15 rounds at 17 s: about 40 minutes.",
    own=(*(f"learning.l2u.{name}" for name in COEFFICIENTS), "learning.patience"),
    forgets=False,
)
