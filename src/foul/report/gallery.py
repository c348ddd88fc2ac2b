"""Which charts a report shows, and what each is made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from foul.report.aggregate import Row, find, number, stat
from foul.report.charts.clients import Bar, client_bars
from foul.report.charts.embedding import embedding
from foul.report.charts.lines import Line, Panel, line_chart
from foul.report.charts.reconstructions import reconstructions
from foul.report.charts.roc import Roc, roc_chart
from foul.report.charts.style import Look, looks
from foul.report.charts.tradeoff import Point, tradeoff
from foul.report.collect import LEARNED, RETRAIN, Entry, Pictures
from foul.report.curves import PANELS, curve
from foul.report.tables import plain

MANY_CLIENTS = 60
"""With more clients than these, bars are of domains."""


@dataclass(frozen=True)
class Chart:
    """A figure with its place in the report.

    Attributes:
        name: of its file.
        group: the part of a request's section that shows it.
        caption: what it shows, in a sentence.
    """

    name: str
    group: str
    caption: str
    figure: Figure


def request_charts(rows: Sequence[Row], forget: frozenset[str]) -> Iterator[Chart]:
    """The charts of one request; `forget` are the clients it names."""
    found = looks((row.label, row.method) for row in rows)
    yield from _curves(rows, found)
    yield from _angles(rows, found)
    yield from _tradeoffs(rows, found)
    yield from _rocs(rows, found)
    yield from _relearning(rows, found)
    yield from _bars(rows, found, forget)


def _curves(rows: Sequence[Row], found: Mapping[str, Look]) -> Iterator[Chart]:
    retrain = find(rows, RETRAIN)
    for key, ylabel in PANELS.items():
        end = retrain.values.get(key) if retrain else None
        lines = _lines(rows, found, key)
        if lines:
            panel = Panel(ylabel, levels=[100 * end.mean] if end else [])
            dotted = " Dotted: Retrain's end." if end else ""
            what = ylabel.removesuffix(" (%)")
            caption = f"{what[0].upper()}{what[1:]} per round.{dotted}"
            yield Chart(key, "curves", caption, line_chart(lines, panel))


def _angles(rows: Sequence[Row], found: Mapping[str, Look]) -> Iterator[Chart]:
    for side in ("retain", "forget"):
        lines = _lines(rows, found, f"angle_{side}", scale=1.0)
        if lines:
            panel = Panel(f"mean cosine, {side} clients", None, levels=[0.0])
            caption = (
                f"Mean cosine between the global step and the {side} clients' own steps."
                " Below the dotted line the step works against them."
            )
            yield Chart(f"angle-{side}", "angles", caption, line_chart(lines, panel))


def _lines(
    rows: Sequence[Row], found: Mapping[str, Look], key: str, scale: float = 100.0
) -> list[Line]:
    """A line per method and seed; the learned model has nothing but its start."""
    lines = [
        curve(entry.result, key, row.name, found[row.label], scale)
        for row in rows
        if row.method != LEARNED
        for entry in row.entries
    ]
    return [line for line in lines if line]


def _tradeoffs(rows: Sequence[Row], found: Mapping[str, Look]) -> Iterator[Chart]:
    learned = find(rows, LEARNED)
    start = learned.gaps.get("fa") if learned else None
    for key, cost in (("bytes", "traffic"), ("flops", "FLOPs")):
        points = [
            Point(row.name, found[row.label], row.shares[key].mean, 100 * abs(row.gaps["fa"].mean))
            for row in rows
            if key in row.shares and "fa" in row.gaps and row.shares[key].mean > 0
        ]
        if any(point.label != RETRAIN for point in points):
            caption = f"Forgetting against {cost}: nearer to the lower left is better."
            level = 100 * abs(start.mean) if start else None
            yield Chart(f"cost-{key}", "tradeoff", caption, tradeoff(points, cost, level))


def _rocs(rows: Sequence[Row], found: Mapping[str, Look]) -> Iterator[Chart]:
    """The ROC of the attack that sees most in the learned model, else in any."""
    measured = [
        (row, attack, told)
        for row in rows
        for attack, told in (row.entries[0].evaluation.get("attacks") or {}).items()
        if told.get("roc")
    ]
    if not measured:
        return
    at_learned = [entry for entry in measured if entry[0].method == LEARNED] or measured
    _, strongest, _ = max(at_learned, key=lambda entry: number(entry[2].get("auc")) or 0.0)
    curves = [
        Roc(row.name, found[row.label], told["roc"])
        for row, attack, told in measured
        if attack == strongest
    ]
    caption = (
        "Membership attack at few false alarms: the attack that sees most in the learned model."
        " A line on the dotted one is guessing."
    )
    yield Chart("roc", "attacks", caption, roc_chart(curves, plain(strongest)))


def _relearning(rows: Sequence[Row], found: Mapping[str, Look]) -> Iterator[Chart]:
    lines, targets = [], []
    for row in rows:
        for entry in row.entries:
            told = entry.evaluation.get("relearn") or {}
            heights = [100 * x for x in told.get("curve") or []]
            if heights:
                lines.append(Line(row.name, found[row.label], range(len(heights)), heights))
                targets += [100 * told["target"]] if told.get("target") is not None else []
    if lines:
        caption = (
            "Relearning: FA when the forgotten clients come back. What is really forgotten returns"
            " no faster than Retrain learns it. Dotted: the FA to return to."
        )
        panel = Panel("forget accuracy FA (%)", levels=sorted({round(x, 3) for x in targets}))
        yield Chart("relearn", "knowledge", caption, line_chart(lines, panel))


def _bars(
    rows: Sequence[Row], found: Mapping[str, Look], forget: frozenset[str]
) -> Iterator[Chart]:
    learned, retrain = find(rows, LEARNED), find(rows, RETRAIN)
    before, after = _accuracies(learned), _accuracies(retrain)
    for row in rows:
        own = _accuracies(row)
        if row.reference or not own:
            continue
        bars = [
            Bar(name, name in forget, own.get(name), before.get(name), after.get(name))
            for name in sorted(own, key=lambda name: (name not in forget, name))
        ]
        caption = (
            f"{row.name} per client; forgotten clients are hatched and come first."
            " Dots: before; strokes: Retrain."
        )
        figure = client_bars(bars, row.name, found[row.label])
        yield Chart(f"clients-{row.label}", "clients", caption, figure)


def _accuracies(row: Row | None) -> dict[str, float]:
    """Training accuracy in % per client, or per domain where clients are many; mean over seeds."""
    if row is None:
        return {}
    told = [entry.evaluation.get("accuracy") or {} for entry in row.entries]
    kind = "domains" if any(len(t.get("clients") or {}) > MANY_CLIENTS for t in told) else "clients"
    tables: list[dict[str, Any]] = [t.get(kind) or {} for t in told]
    means = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        mean = stat((t.get(name, {}).get("train") or {}).get("accuracy") for t in tables)
        if mean:
            means[name] = 100 * mean.mean
    return means


def picture_charts(pictures: Pictures) -> Iterator[Chart]:
    """Reconstructions and embeddings of the learned model."""
    grid = reconstructions(pictures.tensors)
    if grid:
        caption = "Test images, and what the decoder makes of both codes, of z_K and of z_V alone."
        yield Chart("reconstructions", "reconstructions", caption, grid)
    for code in ("k", "v"):
        places = pictures.tensors.get(f"{code}_map")
        for kind, plural in (("domain", "domains"), ("class", "classes")):
            groups = pictures.tensors.get(kind)
            if places is not None and groups is not None:
                names = [str(name) for name in pictures.names.get(plural, [])]
                title = f"z_{code.upper()} by {kind}"
                figure = embedding(places.tolist(), groups.tolist(), names, title)
                caption = f"z_{code.upper()} of test samples in two dimensions, coloured by {kind}."
                yield Chart(f"{code}-by-{kind}", "embeddings", caption, figure)


def forgotten(request: str, entries: Sequence[Entry]) -> frozenset[str]:
    """Ids of the clients, or names of the domains, that a request is about."""
    kind, _, names = request.partition(":")
    wanted = {name.strip() for name in names.split(",")}
    clients = entries[0].run.facts.get("clients", []) if entries else []
    field = "domain" if kind == "domain" else "id"
    return frozenset({c.get("id", "") for c in clients if c.get(field) in wanted} | wanted)
