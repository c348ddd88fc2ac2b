"""Tables of the report: text in cells, ready for a page or a paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foul.report.aggregate import Row, Stat, best, number, share, stat
from foul.report.collect import LEARNED, RETRAIN
from foul.report.metrics import COMPARISON, COSTS, COUNT, PERCENT, Beside, Shown, Unit

NONE = "-"
"""What was not measured."""
MINUS = "\u2212"


@dataclass(frozen=True)
class Cell:
    """A value, its spread over seeds, what stands beside it, and whether it is the best."""

    text: str
    spread: str = ""
    beside: str = ""
    best: bool = False


@dataclass(frozen=True)
class Column:
    name: str
    meaning: str = ""


@dataclass(frozen=True)
class Line:
    """A row of cells; those of the learned model and of Retrain are there to compare with."""

    cells: Sequence[Cell]
    reference: bool = False
    first: bool = False
    """Whether a group of rows begins here."""


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column]
    lines: Sequence[Line]


def cell(value: Stat | None, unit: Unit, beside: str = "", best: bool = False) -> Cell:
    """Mean and, over several seeds, the standard deviation."""
    if value is None:
        return Cell(NONE)
    exact = unit.counted and not value.std
    text = _signed(f"{unit.scale * value.mean:.{0 if exact else unit.digits}f}")
    if value.std is None or exact:
        return Cell(text, "", beside, best)
    return Cell(text, f"± {unit.scale * value.std:.{unit.digits}f}", beside, best)


def _signed(text: str) -> str:
    """With a minus sign as wide as the plus."""
    return text.replace("-", MINUS)


def comparison(rows: Sequence[Row]) -> Table:
    """All methods of a request with their gaps; columns that nobody has are left out."""
    return _metrics_table(rows, COMPARISON)


def costs(rows: Sequence[Row], learning: Mapping[str, Stat]) -> Table:
    """What each method cost, and its percentage of Retrain's; learning in a line of its own."""
    table = _metrics_table([row for row in rows if row.method != LEARNED], COSTS)
    if not learning:
        return table
    by_name = {shown.name: shown for shown in COSTS}
    cells = [Cell("learning, once")]
    for column in table.columns[1:]:
        shown = by_name.get(column.name)
        seeds = str(max(value.n for value in learning.values()))
        cells.append(cell(learning.get(shown.key), shown.unit) if shown else Cell(seeds))
    return Table(table.columns, [Line(cells, reference=True), *table.lines])


def learning_costs(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Stat]:
    """Means of what the learning stage cost."""
    told = [(summary.get("costs") or {}).get("learning") or {} for summary in summaries]
    sums = [
        dict(cost)
        | {
            "disk": summary.get("disk_bytes"),
            "wall_seconds": summary.get("wall_seconds"),
            "bytes": _sum(cost, "bytes_down", "bytes_up"),
            "flops": _sum(cost, "flops_client", "flops_server"),
        }
        for summary, cost in zip(summaries, told, strict=True)
    ]
    found = {shown.key: stat(cost.get(shown.key) for cost in sums) for shown in COSTS}
    return {key: value for key, value in found.items() if value is not None}


def _sum(cost: Mapping[str, Any], *keys: str) -> float | None:
    parts = [number(cost.get(key)) for key in keys]
    return None if None in parts else sum(part or 0.0 for part in parts)


def _metrics_table(rows: Sequence[Row], columns: Sequence[Shown]) -> Table:
    used = [shown for shown in columns if any(shown.key in row.values for row in rows)]
    winners = {shown.key: best(rows, shown) for shown in used}
    several = any(len(row.entries) > 1 for row in rows)
    heads = [Column("method"), *([Column("n", "number of seeds")] if several else [])]
    lines = []
    for row in rows:
        cells = [Cell(row.name), *([Cell(str(len(row.entries)))] if several else [])]
        for shown in used:
            value, wins = row.values.get(shown.key), row.label in winners[shown.key]
            cells.append(cell(value, shown.unit, _beside(row, shown), wins))
        lines.append(Line(cells, row.reference))
    return Table([*heads, *(Column(s.name, s.metric.meaning) for s in used)], lines)


def _beside(row: Row, shown: Shown) -> str:
    if row.method == RETRAIN:
        return ""
    if shown.beside is Beside.GAP and shown.key in row.gaps:
        return _signed(f"{shown.unit.scale * row.gaps[shown.key].mean:+.{shown.unit.digits}f}")
    if shown.beside is Beside.SHARE and shown.key in row.shares:
        return share(row.shares[shown.key].mean)
    return ""


def attacks(rows: Sequence[Row]) -> Table:
    """Every attack against every model; the attack of the results where nothing else was run."""
    columns = [
        Column("attack"),
        Column("model"),
        Column("AUC", "area under the ROC; 0.5 is guessing"),
        Column("accuracy %", "balanced accuracy at the best threshold; 50 is guessing"),
        Column("TPR at 1 % FPR", "members found, in %, when 1 % of the others are accused"),
        Column("TPR at 0.1 %", "the same at 0.1 %, with 1,000 or more non-members"),
        Column("members / others", "how many samples"),
    ]
    told = [(row, _attacks_of(row)) for row in rows]
    names = dict.fromkeys(name for _, attacks in told for name in attacks)
    lines = []
    for name in names:
        own = [(row, attacks[name]) for row, attacks in told if name in attacks]
        for position, (row, found) in enumerate(own):
            cells = [
                Cell(plain(name) if not position else ""),
                Cell(row.name),
                *_attack_cells(found),
            ]
            lines.append(Line(cells, row.reference, first=not position))
    return Table(columns, lines)


def plain(name: str) -> str:
    """The name of an attack as people write it."""
    return name.replace("_", " ")


def _attacks_of(row: Row) -> dict[str, list[Mapping[str, Any]]]:
    """What each attack found, per seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in row.entries:
        for name, told in (entry.evaluation.get("attacks") or {}).items():
            found.setdefault(str(name), []).append(told)
    if found:
        return found
    for entry in row.entries:
        told = {
            "auc": entry.result.get("mia_auc"),
            "auc_low": entry.result.get("mia_low"),
            "auc_high": entry.result.get("mia_high"),
            "accuracy": entry.result.get("mia_accuracy"),
            "tpr_1": entry.result.get("mia_tpr_1"),
        }
        if number(told["auc"]) is not None:
            found.setdefault("loss", []).append(told)
    return found


def _attack_cells(told: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    units = {"auc": Unit(digits=3), "accuracy": PERCENT, "tpr_1": PERCENT, "tpr_01": PERCENT}
    for key, unit in units.items():
        interval = _interval(told[0], key, unit) if len(told) == 1 else ""
        yield cell(stat(t.get(key) for t in told), unit, interval)
    members, others = told[0].get("members"), told[0].get("others")
    yield Cell(NONE if members is None else f"{members} / {others}")


def _interval(told: Mapping[str, Any], key: str, unit: Unit) -> str:
    low, high = number(told.get(f"{key}_low")), number(told.get(f"{key}_high"))
    if low is None or high is None:
        return ""
    return f"[{unit.scale * low:.{unit.digits}f}, {unit.scale * high:.{unit.digits}f}]"


@dataclass(frozen=True)
class _Question:
    """Something asked of a model: where its answer is in an evaluation, or else in a result."""

    column: Column
    path: tuple[str, ...]
    result: str
    unit: Unit = PERCENT


_QUESTIONS = (
    *(
        _Question(
            Column(f"{part} {told} %", f"a linear probe on z_{part} that tells {meaning}"),
            ("probes", part, kind),
            f"{part.lower()}_probe" if kind == "labels" else "",
        )
        for part in ("K", "V")
        for told, kind, meaning in (
            ("class", "labels", "the class of the forget clients' samples"),
            ("domain", "domain", "the domain of a sample"),
        )
    ),
    *(
        _Question(
            Column(f"KL {side}", f"divergence from Retrain's answers on {side} data, in nats"),
            ("kl", side),
            f"kl_{side}",
            Unit(digits=3),
        )
        for side in ("forget", "retain", "test")
    ),
    _Question(
        Column("relearn", "rounds until FA is back when the forgotten clients rejoin"),
        ("relearn", "rounds"),
        "relearn",
        COUNT,
    ),
    _Question(
        Column("backdoor %", "how often a trigger planted by the forgotten clients still works"),
        ("backdoor", "success"),
        "backdoor",
    ),
)


def knowledge(rows: Sequence[Row]) -> Table:
    """What the models still know; questions that nobody was asked are left out."""
    used = [q for q in _QUESTIONS if any(answer(row, q.result, q.path) for row in rows)]
    if not used:
        return Table([], [])
    lines = [Line([Cell(row.name), *(_told(row, q) for q in used)], row.reference) for row in rows]
    floor = _floor(rows)
    if floor:
        cells = [
            cell(stat([floor.get(q.path[1])]), q.unit) if q.path[0] == "kl" else Cell("")
            for q in used
        ]
        lines.append(Line([Cell("floor of KL"), *cells], reference=True))
    return Table([Column("model"), *(q.column for q in used)], lines)


def answer(row: Row, key: str, path: Sequence[str]) -> Stat | None:
    """What is at this path of the evaluations, or else under this key of the results."""
    return stat(dig(entry.evaluation, *path) for entry in row.entries) or stat(
        entry.result.get(key) for entry in row.entries
    )


def _told(row: Row, question: _Question) -> Cell:
    found = answer(row, question.result, question.path)
    tried = dig(row.entries[0].evaluation, "relearn", "curve")
    if found is None and question.path[0] == "relearn" and tried:
        return Cell(f"> {len(tried) - 1}")
    return cell(found, question.unit)


def _floor(rows: Sequence[Row]) -> Mapping[str, Any]:
    for row in rows:
        for entry in row.entries:
            if entry.evaluation.get("kl_floor"):
                return dict(entry.evaluation["kl_floor"])
    return {}


def dig(told: Any, *path: str) -> Any:
    """What is at this path of nested mappings; None where it ends early."""
    for key in path:
        told = told.get(key) if isinstance(told, Mapping) else None
    return told
