"""The page for a data-protection officer: what was asked, done and measured, in plain words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foul.report.aggregate import Row, Stat, chosen, find, number, share
from foul.report.collect import LEARNED, RETRAIN
from foul.report.tables import answer, dig
from foul.report.wording import QUESTIONS
from foul.unlearning.methods import METHODS


@dataclass(frozen=True)
class Finding:
    """A measurement: what was measured, its numbers, and what they mean."""

    what: str
    numbers: str
    meaning: str


@dataclass(frozen=True)
class Account:
    """One request, told to somebody who is not a researcher."""

    request: str
    asked: str
    done: str
    method: str
    findings: Sequence[Finding]


@dataclass(frozen=True)
class _Models:
    """The three models that every measurement is about."""

    row: Row
    learned: Row | None
    retrain: Row | None

    def values(self, key: str) -> tuple[Stat | None, Stat | None, Stat | None]:
        """Of the method, the learned model and Retrain."""
        rows = (self.row, self.learned, self.retrain)
        own, before, after = (row.values.get(key) if row else None for row in rows)
        return own, before, after

    def answers(self, key: str, *path: str) -> tuple[Stat | None, Stat | None, Stat | None]:
        """The same for what is in evaluations, or else in results."""
        rows = (self.row, self.learned, self.retrain)
        own, before, after = (answer(row, key, path) if row else None for row in rows)
        return own, before, after


def account(
    request: str, rows: Sequence[Row], forget: frozenset[str], facts: Mapping[str, Any]
) -> Account:
    """What there is to say about a request."""
    row = chosen(rows) or find(rows, RETRAIN)
    asked = _asked(request, forget, facts)
    if row is None:
        return Account(request, asked, "Nothing was done yet.", "", [])
    models = _Models(row, find(rows, LEARNED), find(rows, RETRAIN))
    return Account(request, asked, _done(row), row.name, list(_findings(models)))


def _asked(request: str, forget: frozenset[str], facts: Mapping[str, Any]) -> str:
    own = [client for client in facts.get("clients", []) if client.get("id") in forget]
    samples = sum(int(number(dig(client, "samples", "train")) or 0) for client in own)
    kind, _, names = request.partition(":")
    whose = f"source “{names}”" if kind == "domain" else f"participant “{names}”"
    return (
        f"That the model forget the training data of {whose}: {len(own)}"
        f" {'participant' if len(own) == 1 else 'participants'} of"
        f" {len(facts.get('clients', []))}, {samples} training samples."
    )


def _done(row: Row) -> str:
    stopped = row.entries[0].result.get("stopped")
    why = f" How it ended: {stopped}." if stopped else ""
    if row.method == RETRAIN:
        return f"A new model was trained from the beginning without that data.{why}"
    entry = METHODS.get(row.method)
    idea = f" In a technician's words: {entry.idea.rstrip('.')}." if entry else ""
    return f"A new model was made from the trained one with the method {row.name}.{idea}{why}"


def _findings(models: _Models) -> Iterator[Finding]:
    for find_one in (_forgetting, _usefulness, _membership, _frozen, _relearning, _backdoor, _cost):
        yield from find_one(models)


def _forgetting(models: _Models) -> Iterator[Finding]:
    own, before, after = models.values("fa")
    if own:
        yield Finding(QUESTIONS["fa"], _three(own, before, after), _verdict(own, after))


def _verdict(own: Stat, after: Stat | None) -> str:
    """How the accuracy on erased data compares with that of a model that never saw it."""
    if after is None:
        return "There is no retrained model to compare with: nobody can tell if this is low enough."
    gap = 100 * (own.mean - after.mean)
    known = (
        "A model that never saw the data is also right on some of it, because it learned from"
        " similar data. The new model is"
    )
    if abs(gap) < 1:
        return f"{known} within one point of such a model."
    if gap > 0:
        return f"{known} {gap:.1f} points above such a model: part of the data's influence remains."
    return (
        f"{known} {-gap:.1f} points below such a model: it avoids the data more than a model that"
        " never saw it would, which can itself be noticed."
    )


def _usefulness(models: _Models) -> Iterator[Finding]:
    own, before, after = models.values("ta")
    if own is None:
        return
    if before is None:
        meaning = "This is how useful the new model is."
    elif before.mean - own.mean < 0.0005:
        meaning = "Erasure cost no accuracy on new data."
    else:
        meaning = f"Erasure cost {100 * (before.mean - own.mean):.1f} points on new data."
    yield Finding(QUESTIONS["ta"], _three(own, before, after), meaning)


def _membership(models: _Models) -> Iterator[Finding]:
    own, before, after = models.values("mia_auc")
    if own:
        numbers = _three(own, before, after, 1.0, "", 3)
        meaning = f"0.5 is guessing, 1 is certainty.{_certainty(models.row)}"
        yield Finding(QUESTIONS["mia_auc"], numbers, meaning)
    own, before, after = models.answers("mia_tpr_1", "attacks", "loss", "tpr_1")
    if own:
        yield Finding(
            QUESTIONS["mia_tpr_1"],
            _three(own, before, after),
            "Guessing would find 1 %. These are the samples an attacker can be rather sure about.",
        )


def _certainty(row: Row) -> str:
    told = row.entries[0].result
    low, high = number(told.get("mia_low")), number(told.get("mia_high"))
    if low is None or high is None or len(row.entries) > 1:
        return ""
    verdict = (
        "this attack could not be told from guessing"
        if low <= 0.5 <= high
        else "this attack still differs from guessing"
    )
    return f" The range of uncertainty is {low:.3f} to {high:.3f}: {verdict}."


def _frozen(models: _Models) -> Iterator[Finding]:
    own, before, after = models.answers("k_probe", "probes", "K", "labels")
    if own is None:
        return
    meaning = (
        "Some methods leave parts of the network as they were. This is how much of the erased"
        " data's content somebody with the model and labelled data can read out of such a part."
    )
    if after:
        gap = 100 * (own.mean - after.mean)
        side = f"{abs(gap):.1f} points {'above' if gap > 0 else 'below'}"
        meaning += f" It is {side if abs(gap) >= 1 else 'within one point of'} the retrained model."
    yield Finding(QUESTIONS["k_probe"], _three(own, before, after), meaning)


def _relearning(models: _Models) -> Iterator[Finding]:
    own, _, after = models.answers("relearn", "relearn", "rounds")
    if own:
        yield Finding(
            QUESTIONS["relearn"],
            _three(own, None, after, 1.0, " rounds", 0),
            "Were it much faster than in the retrained model, it would be hidden, not forgotten.",
        )


def _backdoor(models: _Models) -> Iterator[Finding]:
    own, before, after = models.answers("backdoor", "backdoor", "success")
    if own:
        yield Finding(
            QUESTIONS["backdoor"],
            _three(own, before, after),
            "A mark was planted in the erased data on purpose. It should work no better than in"
            " the retrained model.",
        )


def _cost(models: _Models) -> Iterator[Finding]:
    shares = [
        f"{share(models.row.shares[key].mean)} of the {what}"
        for key, what in (("bytes", "traffic"), ("flops", "computation"))
        if key in models.row.shares
    ]
    if shares and models.row.method != RETRAIN:
        meaning = "Retraining is the sure way; the rest is what was saved by not doing it."
        yield Finding("What it cost, beside retraining", " and ".join(shares), meaning)


def _three(
    own: Stat,
    before: Stat | None,
    after: Stat | None,
    scale: float = 100.0,
    unit: str = " %",
    digits: int = 1,
) -> str:
    parts = [f"{_one(own, scale, unit, digits)} now"]
    if before:
        parts.append(f"{_one(before, scale, unit, digits)} before")
    if after:
        parts.append(f"{_one(after, scale, unit, digits)} if retrained without the data")
    return "; ".join(parts)


def _one(value: Stat, scale: float = 100.0, unit: str = " %", digits: int = 1) -> str:
    return f"{scale * value.mean:.{digits}f}{unit}"
