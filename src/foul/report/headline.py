"""The outcome of a request in a few sentences, computed from the figures."""

import shlex
from collections.abc import Sequence

from foul.report.aggregate import Row, chosen, find, retrain_of, share
from foul.report.collect import LEARNED, RETRAIN
from foul.report.metrics import DISTANCE


def headline(rows: Sequence[Row]) -> list[str]:
    """Who comes nearest to Retrain, what that took, and what nobody can tell."""
    row, learned, retrain = chosen(rows), find(rows, LEARNED), find(rows, RETRAIN)
    if row is None:
        return ["No unlearning method was run: there are only models to compare with."]
    if retrain is None or DISTANCE.key not in row.values:
        return [_alone(row, learned)]
    return [_nearest(row, rows, learned), _accuracy(row, learned, retrain), *_price(row)]


def missing_retrain(rows: Sequence[Row]) -> str:
    """The command that makes every gap tellable; empty if each result has its Retrain."""
    entries = [entry for row in rows for entry in row.entries]
    for entry in entries:
        if retrain_of(entry, entries) is None:
            words = ["foul", "unlearn", str(entry.run.path), "--forget", entry.request]
            return shlex.join([*words, "--method", RETRAIN])
    return ""


def _alone(row: Row, learned: Row | None) -> str:
    if "fa" not in row.values:
        return f"{row.name} was run, but its accuracy on the forgotten data was not measured."
    before = f" from {_percent(learned, 'fa')}" if learned and "fa" in learned.values else ""
    return (
        f"With {row.name}, accuracy on the data to be forgotten went{before} to"
        f" {_percent(row, 'fa')}. Without Retrain nobody can tell how far it should have gone."
    )


def _nearest(row: Row, rows: Sequence[Row], learned: Row | None) -> str:
    off = row.values[DISTANCE.key].mean
    start = learned.values.get(DISTANCE.key) if learned else None
    if start and off >= start.mean:
        return (
            f"No method comes nearer to Retrain than the learned model itself, which is"
            f" {start.mean:.1f} points off; the best of them, {row.name}, is {off:.1f} points off."
        )
    rivals = sum(not other.reference for other in rows) > 1
    opening = f"{row.name} comes nearest to Retrain" if rivals else f"{row.name} was run"
    before = f" (the learned model: {start.mean:.1f})" if start else ""
    return f"{opening}: it is {off:.1f} points off{before}."


def _accuracy(row: Row, learned: Row | None, retrain: Row) -> str:
    before = f" from {_percent(learned, 'fa')}" if learned and "fa" in learned.values else ""
    gap = 100 * row.gaps["fa"].mean
    if abs(gap) < 1:
        verdict = "within a point of it"
    elif gap > 0:
        verdict = f"it still knows {gap:.1f} points more than a model that never saw them"
    else:
        verdict = f"it forgot {-gap:.1f} points more than it should, which an attacker may see"
    return (
        f"Accuracy on the data to be forgotten went{before} to {_percent(row, 'fa')}; Retrain has"
        f" {_percent(retrain, 'fa')}: {verdict}."
    )


def _price(row: Row) -> list[str]:
    costs = [
        f"{share(row.shares[key].mean)} of the {what}"
        for key, what in (("bytes", "traffic"), ("flops", "FLOPs"))
        if key in row.shares
    ]
    return [f"It took {' and '.join(costs)} of retraining."] if costs else []


def _percent(row: Row | None, key: str) -> str:
    value = row.values.get(key) if row else None
    return f"{100 * value.mean:.1f} %" if value else "-"
