"""Mean, spread and gaps to Retrain over seeds: pure functions of results."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foul.evaluation.gaps import distance
from foul.report.collect import LEARNED, RETRAIN, Entry
from foul.report.metrics import COMPARISON, DISTANCE, KEYS, Beside, Shown


@dataclass(frozen=True)
class Stat:
    """A mean over n seeds; the sample standard deviation (n - 1) needs two of them."""

    mean: float
    std: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "std": self.std, "n": self.n}


@dataclass(frozen=True)
class Row:
    """A method over its seeds; values and gaps by metric, in the units of the results.

    A gap is the mean of the differences to the Retrain of the same seed, a share the mean of the
    quotients.
    """

    label: str
    method: str
    entries: Sequence[Entry]
    values: Mapping[str, Stat]
    gaps: Mapping[str, Stat]
    shares: Mapping[str, Stat]

    @property
    def reference(self) -> bool:
        """Whether it is there to compare with: the learned model, or a retrained one."""
        return self.method == LEARNED or self.method.startswith(RETRAIN)

    @property
    def name(self) -> str:
        """As the report calls it."""
        return self.label.replace(LEARNED, "learned", 1) if self.method == LEARNED else self.label


def number(value: Any) -> float | None:
    """The value if it is a finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def stat(values: Iterable[Any]) -> Stat | None:
    """Mean and standard deviation of what is a number; nothing if nothing is."""
    known = [x for x in map(number, values) if x is not None]
    if not known:
        return None
    mean, n = math.fsum(known) / len(known), len(known)
    std = math.sqrt(math.fsum((x - mean) ** 2 for x in known) / (n - 1)) if n > 1 else None
    return Stat(mean, std, n)


def aggregate(entries: Sequence[Entry]) -> list[Row]:
    """One row per method of a request, Retrain last and the learned model first."""
    labels = dict.fromkeys(entry.label for entry in entries)
    rows = [_row([e for e in entries if e.label == label], entries) for label in labels]
    return sorted(rows, key=lambda row: (row.method == RETRAIN) - (row.method == LEARNED))


def _row(own: Sequence[Entry], entries: Sequence[Entry]) -> Row:
    pairs = []
    for entry in own:
        retrain = retrain_of(entry, entries)
        pairs.append((_figures(entry), retrain.result if retrain else {}))
    values, gaps, shares = {}, {}, {}
    for key in KEYS:
        values[key] = stat(told.get(key) for told, _ in pairs)
        gaps[key] = stat(_gap(*pair, key) for pair in pairs)
        shares[key] = stat(_share(*pair, key) for pair in pairs)
    values[DISTANCE.key] = stat(_distance(*pair) for pair in pairs)
    return Row(own[0].label, own[0].method, own, _known(values), _known(gaps), _known(shares))


def _figures(entry: Entry) -> dict[str, Any]:
    """A result; what Retrain does from its random beginning on is not forgetting."""
    left_out = ("t2f", "rounds_to_retrain") if entry.method.startswith(RETRAIN) else ()
    return {key: value for key, value in entry.result.items() if key not in left_out}


def _known(stats: Mapping[str, Stat | None]) -> dict[str, Stat]:
    return {key: found for key, found in stats.items() if found is not None}


def retrain_of(entry: Entry, entries: Sequence[Entry]) -> Entry | None:
    """The Retrain to compare with: of the same runs and the same seed."""
    for other in entries:
        if (other.method, other.variant, other.seed) == (RETRAIN, entry.variant, entry.seed):
            return other
    return None


def _gap(result: Mapping[str, Any], retrain: Mapping[str, Any], key: str) -> float | None:
    here, there = number(result.get(key)), number(retrain.get(key))
    return None if here is None or there is None else here - there


def _share(result: Mapping[str, Any], retrain: Mapping[str, Any], key: str) -> float | None:
    here, there = number(result.get(key)), number(retrain.get(key))
    return None if here is None or not there else here / there


def _distance(result: Mapping[str, Any], retrain: Mapping[str, Any]) -> float | None:
    """The headline of decision 16, if both have the accuracies that it is made of."""
    needed = ("fa", "ra", "ta")
    if any(number(told.get(key)) is None for told in (result, retrain) for key in needed):
        return None
    return distance(result, retrain)


def best(rows: Sequence[Row], shown: Shown) -> set[str]:
    """The labels of the best methods of a column; a method alone has nobody to beat."""
    scores = {row.label: _score(row, shown) for row in rows if not row.reference}
    known = {label: score for label, score in scores.items() if score is not None}
    if len(known) < 2:
        return set()
    top = max(known.values())
    return {label for label, score in known.items() if math.isclose(score, top, abs_tol=1e-12)}


def _score(row: Row, shown: Shown) -> float | None:
    """The higher the better."""
    if shown.better == "as retrain":
        return -abs(row.gaps[shown.key].mean) if shown.key in row.gaps else None
    value = row.values.get(shown.key)
    if value is None:
        return None
    return value.mean if shown.better == "higher" else -value.mean


def find(rows: Sequence[Row], method: str) -> Row | None:
    """The first row of this method."""
    return next((row for row in rows if row.method == method), None)


def chosen(rows: Sequence[Row]) -> Row | None:
    """The method to speak of: the one nearest to Retrain, or the first if nobody can tell."""
    methods = [row for row in rows if not row.reference]
    measured = [row for row in methods if DISTANCE.key in row.values]
    if measured:
        return min(measured, key=lambda row: row.values[DISTANCE.key].mean)
    return methods[0] if methods else None


def to_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean, std and n of every metric, its gap and its share, by method."""
    told: dict[str, Any] = {}
    for row in rows:
        told[row.label] = {key: found.to_dict() for key, found in row.values.items()}
        for key in (shown.key for shown in COMPARISON if shown.beside is Beside.GAP):
            if key in row.gaps:
                told[row.label][f"{key}_gap"] = row.gaps[key].to_dict()
        for key in ("bytes", "flops"):
            if key in row.shares:
                told[row.label][f"{key}_share"] = row.shares[key].to_dict()
    return told


def share(quotient: float) -> str:
    """A part of Retrain's cost in percent, or from tenfold on, how many times it is."""
    return f"{quotient:.3g} times" if quotient >= 10 else f"{100 * quotient:.3g} %"
