"""All forgotten domains of a data set at once: which method is nearest to Retrain on average."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from foul.evaluation.metrics import METRICS
from foul.experiments.reproduce.plan import Done, Shown, Trial
from foul.experiments.reproduce.rows import Row, nearest, ranked, rows_of, share
from foul.report.aggregate import stat
from foul.report.collect import RETRAIN
from foul.report.metrics import Unit
from foul.report.tables import NONE, Cell, Column, Line, Table, cell

_HEADS = {
    "fa": "abs. FA gap",
    "ra": "RA short",
    "ta": "TA short",
    "mia_accuracy": "abs. MIA gap",
}
_COSTS = {"bytes": "MB %", "flops": "FLOPs %"}


def overall(trial: Trial, done: Sequence[Done]) -> tuple[list[Shown], list[str]]:
    """A table of means over the requests, and the nearest methods in a sentence; nothing for a
    single request.

    Only methods that served every request have a row: a mean over the easy ones would mislead.
    """
    if len(trial.forget) < 2:
        return [], []
    served = [rows_of(trial, request, done) for request in trial.forget]
    rows = [_joined(row, served) for row in served[0] if _everywhere(row, served)]
    rows = [row for row in rows if row.variant.method != RETRAIN]
    heads = ["method", *_HEADS.values(), "off by", *_COSTS.values()]
    lines = [_line(row, nearest(rows)) for row in rows]
    names = ", ".join(request.removeprefix("domain:") for request in trial.forget)
    caption = (
        f"{trial.source.title}, mean over {names}, each forgotten in turn: what is lost against "
        "Retrain in points (`off by`: the mean of the four); MB and FLOPs in % of Retrain's."
    )
    told = ", ".join(f"{label} ({off:.1f})" for label, off in list(ranked(rows).items())[:3])
    sentence = f"Nearest to Retrain over the domains of {trial.source.title}: {told}."
    shown = Shown(caption, Table([Column(head) for head in heads], lines))
    return [shown], [sentence] if told else []


def _everywhere(row: Row, served: Sequence[Sequence[Row]]) -> bool:
    return all(any(other.label == row.label for other in rows) for rows in served)


def _joined(row: Row, served: Sequence[Sequence[Row]]) -> Row:
    """The row's results of all requests."""
    results = [
        r for rows in served for other in rows if other.label == row.label for r in other.results
    ]
    return Row(row.variant, results)


def _line(row: Row, winner: str) -> Line:
    cells = [Cell(row.label), *(Cell(_loss(row.results, key)) for key in _HEADS)]
    cells.append(cell(stat([row.mean("distance")]), Unit(), best=row.label == winner))
    return Line([*cells, *(Cell(share(row, key)) for key in _COSTS)], row.reference)


def _loss(results: Sequence[Mapping[str, Any]], key: str) -> str:
    """The mean of what each result loses against Retrain, in points and never negative: what
    `Metric.loss` gives for the gap over zero."""
    metric = METRICS[key]
    gaps = [r[f"{key}_gap"] for r in results if r.get(f"{key}_gap") is not None]
    return f"{mean(metric.loss(gap / metric.scale, 0.0) for gap in gaps):.1f}" if gaps else NONE
