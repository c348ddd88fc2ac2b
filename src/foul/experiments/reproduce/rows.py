"""Results of an experiment as rows: means over seeds, gaps to Retrain, the paper beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foul.evaluation.gaps import distance
from foul.evaluation.metrics import METRICS
from foul.experiments.reproduce.paper import ROWS, Printed
from foul.experiments.reproduce.plan import Done, Shown, Trial, Variant
from foul.report.aggregate import Stat, stat
from foul.report.collect import LEARNED, RETRAIN
from foul.report.metrics import PERCENT, Unit
from foul.report.tables import MINUS, NONE, Cell, Column, Line, Table, cell

HEADS = {"fa": "FA", "ra": "RA", "ta": "TA", "mia_accuracy": "MIA"}
"""The columns of the paper's tables."""
FAR = 5.0
"""Points from which a difference to the paper is told: two Retrains are that far apart."""


@dataclass(frozen=True)
class Row:
    """A variant over its seeds."""

    variant: Variant
    results: Sequence[Mapping[str, Any]]

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def reference(self) -> bool:
        """Whether it is there to compare with."""
        return self.variant.method == LEARNED or self.variant.method.startswith(RETRAIN)

    def stat(self, key: str) -> Stat | None:
        return stat(result.get(key) for result in self.results)

    def mean(self, key: str) -> float | None:
        found = self.stat(key)
        return None if found is None else found.mean


def rows_of(trial: Trial, request: str, done: Sequence[Done]) -> list[Row]:
    """The variants of a trial that served a request, in their order."""
    own = [d for d in done if d.trial.label == trial.label]
    rows = []
    for variant in trial.variants:
        results = [
            result
            for d in own
            for result in d.results
            if result["label"] == variant.label and result["forget"] == request
        ]
        if results:
            rows.append(Row(variant, results))
    return rows


def printed_rows(trial: Trial, request: str) -> Mapping[str, Printed]:
    """What the paper prints for this data set; nothing if it prints nothing, the images are made,
    or the request is another one: it prints one domain's figures, and we take the last."""
    other = request != trial.source.requests(())[0]
    return {} if trial.source.made or other else ROWS.get(trial.source.name, {})


def signed(value: float, digits: int = 1) -> str:
    """With its sign, and a minus as wide as the plus."""
    return f"{value:+.{digits}f}".replace("-", MINUS)


def comparison(rows: Sequence[Row], printed: Mapping[str, Printed]) -> Table:
    """Our figures, in parentheses their gaps to our Retrain; `off by` is decision 16's headline,
    the paper's is computed from its columns."""
    several = any(len(row.results) > 1 for row in rows)
    heads = [Column("method"), *([Column("n")] if several else [])]
    heads += [Column(f"{head} %", METRICS[key].meaning) for key, head in HEADS.items()]
    heads += [Column("off by (paper)" if printed else "off by")]
    heads += [Column("rounds"), Column("MB / FLOPs %")]
    winner = nearest(rows)
    lines = []
    for row in rows:
        cells = [Cell(row.label), *([Cell(str(len(row.results)))] if several else [])]
        cells += [cell(row.stat(key), PERCENT, _gap(row, key)) for key in HEADS]
        theirs = _printed_distance(row, printed)
        cells.append(cell(row.stat("distance"), Unit(), theirs, best=row.label == winner))
        cells.append(cell(row.stat("rounds"), Unit(counted=True)))
        cells.append(Cell(" / ".join(share(row, key) for key in ("bytes", "flops"))))
        lines.append(Line(cells, row.reference))
    return Table(heads, lines)


def beside_paper(rows: Sequence[Row], printed: Mapping[str, Printed]) -> Table:
    """Ours, the paper's, and the difference in points, of every row that the paper has."""
    heads = [Column("method")]
    for head in HEADS.values():
        heads += [Column(f"{head} %"), Column("paper"), Column("diff.", "ours minus the paper's")]
    lines = []
    for row in rows:
        told = printed.get(row.variant.printed)
        if told is None:
            continue
        cells = [Cell(row.label)]
        for key in HEADS:
            ours, theirs = row.stat(key), told.to_dict()[key]
            cells += [
                Cell(cell(ours, PERCENT).text),
                Cell(f"{theirs:.2f}"),
                Cell(NONE if ours is None else signed(100 * ours.mean - theirs)),
            ]
        lines.append(Line(cells, row.reference))
    return Table(heads, lines)


def differences(rows: Sequence[Row], printed: Mapping[str, Printed]) -> list[str]:
    """A sentence for every row whose gap to Retrain is another one than the paper's.

    Gaps are compared, not accuracies: those depend on the network and the rounds of learning.
    """
    retrain = printed.get("Retrain")
    sentences = []
    for row in rows:
        told = printed.get(row.variant.printed)
        if told is None or retrain is None or row.variant.printed == "Retrain":
            continue
        far = []
        for key, head in HEADS.items():
            ours = row.mean(f"{key}_gap")
            theirs = told.to_dict()[key] - retrain.to_dict()[key]
            if ours is not None and abs(ours - theirs) >= FAR:
                far.append(f"{head} {signed(ours)} (paper {signed(theirs, 2)})")
        if far:
            sentences.append(f"{row.label}, gap to Retrain: {', '.join(far)}.")
    return sentences


def both_tables(trial: Trial, request: str, done: Sequence[Done]) -> tuple[list[Shown], list[str]]:
    """The tables of one request, and where they differ from the paper."""
    rows, printed = rows_of(trial, request, done), printed_rows(trial, request)
    title = f"{trial.source.title}, forgetting {request}"
    shown = [
        Shown(
            f"{title}. In parentheses: difference to our Retrain; MB and FLOPs in % of its.",
            comparison(rows, printed),
        )
    ]
    if printed:
        unknown = "" if trial.source.name == "pacs" else " (it does not say which domain it forgot)"
        caption = f"{title}: ours beside the paper's{unknown}."
        shown.append(Shown(caption, beside_paper(rows, printed)))
    return shown, differences(rows, printed)


def ranked(rows: Sequence[Row]) -> dict[str, float]:
    """The headline of each method by its label, the nearest to Retrain first."""
    known = {
        row.label: value
        for row in rows
        if not row.reference and (value := row.mean("distance")) is not None
    }
    return {label: known[label] for label in sorted(known, key=lambda label: known[label])}


def nearest(rows: Sequence[Row]) -> str:
    """The label of the method nearest to Retrain, if there are several."""
    known = ranked(rows)
    return next(iter(known)) if len(known) > 1 else ""


def _gap(row: Row, key: str) -> str:
    gap = row.mean(f"{key}_gap")
    return "" if gap is None or row.variant.method == RETRAIN else signed(gap)


def share(row: Row, key: str) -> str:
    """Of Retrain's cost; it hardly moves with the seed."""
    part = row.mean(f"{key}_share")
    return NONE if part is None else f"{100 * part:.3g}"


def _printed_distance(row: Row, printed: Mapping[str, Printed]) -> str:
    """The headline of the paper's row; empty if it has none, or is Retrain's."""
    told = printed.get(row.variant.printed)
    if told is None or row.variant.printed == "Retrain":
        return ""
    return f"{distance(told.fractions(), printed['Retrain'].fractions()):.1f}"
