"""A receipt as a page for people: to be read, printed and filed. No scripts, nothing from outside.

A page is made from the receipt's facts alone: the same facts give the same bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment

from foul.erasure.receipts.canonical import canonical, sha256
from foul.erasure.receipts.keys import fingerprint, spaced
from foul.evaluation.metrics import METRICS
from foul.report.environment import page_environment
from foul.report.units import duration, operations, size
from foul.report.wording import QUESTIONS
from foul.unlearning.methods import METHODS

TITLES = {
    "erasure": "Receipt of an erasure",
    "failure": "Record of an erasure that failed",
    "verification": "Record of a verification",
    "withdrawal": "Record of a withdrawn request",
    "readmission": "Record of a readmission",
    "rotation": "Record of a new signing key",
}
COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "rounds": ("Rounds", lambda count: f"{count:.0f}"),
    "bytes_down": ("Sent to participants", size),
    "bytes_up": ("Received from participants", size),
    "flops_client": ("Computed by participants", operations),
    "flops_server": ("Computed by the server", operations),
    "seconds": ("Work of participants", duration),
    "wall_seconds": ("Time on the clock", duration),
    "disk": ("Disk for stored history and caches", size),
}
"""What costs are called, and how they are written."""


@dataclass(frozen=True)
class Figure:
    """A piece of evidence, ready to be read."""

    what: str
    numbers: str
    policy: str
    passed: bool | None


@cache
def _environment() -> Environment:
    environment = page_environment("foul.erasure.receipts")
    environment.filters |= {"size": size, "moment": moment, "spaced": spaced, "sentence": sentence}
    return environment


def render_page(content: Mapping[str, Any], key: str) -> str:
    """The page of a receipt.

    Args:
        content: what is signed, but for the page's own hash.
        key: the public key that signs, in hexadecimal digits.
    """
    told = content["statement"]
    template = _environment().get_template("receipt.html.j2")
    return template.render(
        content=content,
        told=told,
        title=TITLES[told["kind"]],
        idea=_idea(told["method"]),
        figures=[_figure(evidence) for evidence in told["evidence"]],
        compared=any(evidence["retrain"] is not None for evidence in told["evidence"]),
        costs=list(cost_lines(told["costs"])),
        retrain_costs=dict(cost_lines(told["retrain_costs"])),
        facts=sha256(canonical(told)),
        fingerprint=fingerprint(key),
        new_fingerprint=fingerprint(told["new_key"]) if told["new_key"] else "",
        file=f"receipt-{content['number']:06d}.json",
    )


def moment(text: str) -> str:
    """`2026-11-16T06:00:00Z` as people write it; anything else as it is."""
    day, mark, time = text.partition("T")
    return f"{day} {time.removesuffix('Z')[:5]} UTC" if mark else text


def sentence(text: str) -> str:
    """The text with a capital and a full stop, whether it has them or not."""
    return f"{text[:1].upper()}{text[1:].rstrip('. ')}." if text else ""


def cost_lines(costs: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    """Costs with their names and units."""
    for name, (called, written) in COSTS.items():
        value = costs.get(name)
        if value is not None:
            yield called, written(value)


def _idea(method: Mapping[str, Any] | None) -> str:
    entry = METHODS.get(method["name"]) if method else None
    return entry.idea.rstrip(".") if entry else ""


def _figure(evidence: Mapping[str, Any]) -> Figure:
    what = evidence["what"] or question(evidence["key"])
    return Figure(sentence(what)[:-1], _numbers(evidence), _policy(evidence), evidence["passed"])


def question(key: str) -> str:
    """What a figure answers, in plain words as far as there are any."""
    return QUESTIONS.get(key) or (METRICS[key].meaning if key in METRICS else key)


def _numbers(evidence: Mapping[str, Any]) -> str:
    key = evidence["key"]
    if evidence["value"] is None:
        return "not measured"
    others = [
        f"{shown(key, evidence[name])} {words}"
        for name, words in (("before", "before"), ("retrain", "if retrained without the data"))
        if evidence[name] is not None
    ]
    value = shown(key, evidence["value"]) + (" now" if others else "")
    if evidence["low"] is not None and evidence["high"] is not None:
        low, high = shown(key, evidence["low"]), shown(key, evidence["high"])
        value += f" (between {low} and {high} with 95 % confidence)"
    return "; ".join([value, *others])


def _policy(evidence: Mapping[str, Any]) -> str:
    key, limits = evidence["key"], []
    if evidence["at_most"] is not None:
        limits.append(f"at most {shown(key, evidence['at_most'])}")
    if evidence["at_least"] is not None:
        limits.append(f"at least {shown(key, evidence['at_least'])}")
    return " and ".join(limits)


def shown(key: str, value: float) -> str:
    """A figure in the unit of its metric; a check of the policy is in that of what it checks."""
    metric = METRICS.get(key.removeprefix("check_"))
    if metric is None or not metric.unit:
        return f"{value:.3f}"
    if metric.unit == "%":
        return f"{100 * value:.1f} %"
    return f"{value:g} {metric.unit}"
