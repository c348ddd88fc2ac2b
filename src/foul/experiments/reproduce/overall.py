"""All forgotten domains of a data set at once: which method is nearest to Retrain on average."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from foul.evaluation.metrics import METRICS
from foul.experiments.reproduce.plan import Done, Shown, Trial
from foul.experiments.reproduce.rows import HEADS, Row, rows_of
from foul.report.tables import NONE, Cell, Column, Line, Table

_HEADS = {
    "fa": "abs. FA gap",
    "ra": "RA short",
    "ta": "TA short",
    "mia_accuracy": "abs. MIA gap",
}
_COSTS = {"bytes_share": "MB %", "flops_share": "FLOPs %"}


def overall(trial: Trial, done: Sequence[Done]) -> tuple[list[Shown], list[str]]:
    """A table of means over the requests, and the nearest method in a sentence; nothing for a
    single request.

    Only methods that served every request have a row: a mean over the easy ones would mislead.
    """
    if len(trial.forget) < 2:
        return [], []
    served = [rows_of(trial, request, done) for request in trial.forget]
    rows = [_joined(row, served) for row in served[0] if _everywhere(row, served)]
    rows = [row for row in rows if row.variant.method != "retrain"]
    losses = {row.label: _losses(row) for row in rows}
    known = {
        row.label: losses[row.label]["distance"]
        for row in rows
        if not row.reference and losses[row.label]["distance"] is not None
    }
    ranked = sorted(known, key=lambda label: known[label] or 0.0)
    heads = [Column("method"), *(Column(head) for head in _HEADS.values()), Column("off by")]
    heads += [Column(head) for head in _COSTS.values()]
    lines = [_line(row, losses[row.label], ranked[:1]) for row in rows]
    names = ", ".join(request.removeprefix("domain:") for request in trial.forget)
    caption = (
        f"{trial.source.title}, mean over {names}, each forgotten in turn: what is lost against "
        "Retrain in points (`off by`: the mean of the four); MB and FLOPs in % of Retrain's."
    )
    return [Shown(caption, Table(heads, lines))], _sentences(trial, ranked, known)


def _sentences(trial: Trial, ranked: Sequence[str], known: Mapping[str, float | None]) -> list[str]:
    if not ranked:
        return []
    told = ", ".join(f"{label} ({known[label]:.1f})" for label in ranked[:3])
    return [f"Nearest to Retrain over the domains of {trial.source.title}: {told}."]


def _everywhere(row: Row, served: Sequence[Sequence[Row]]) -> bool:
    return all(any(other.label == row.label for other in rows) for rows in served)


def _joined(row: Row, served: Sequence[Sequence[Row]]) -> Row:
    """The row's results of all requests."""
    results = [
        r for rows in served for other in rows if other.label == row.label for r in other.results
    ]
    return Row(row.variant, results)


def _losses(row: Row) -> dict[str, float | None]:
    """What it loses against Retrain, never negative: each result's loss, then their mean."""
    told: dict[str, float | None] = {key: _loss(row.results, key) for key in HEADS}
    return told | {"distance": row.mean("distance")}


def _loss(results: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """A gap in points is what `Metric.loss` gives for the gap over zero."""
    metric = METRICS[key]
    gaps = [r[f"{key}_gap"] for r in results if r.get(f"{key}_gap") is not None]
    return mean(metric.loss(gap / metric.scale, 0.0) for gap in gaps) if gaps else None


def _line(row: Row, losses: Mapping[str, float | None], nearest: Sequence[str]) -> Line:
    cells = [Cell(row.label), *(Cell(_points(losses[key])) for key in HEADS)]
    cells.append(Cell(_points(losses["distance"]), best=row.label in nearest))
    for key in _COSTS:
        part = row.mean(key)
        cells.append(Cell(NONE if part is None else f"{100 * part:.3g}"))
    return Line(cells, row.reference)


def _points(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"
