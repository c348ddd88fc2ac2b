"""The pages: what each shows, of which facts."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from jinja2 import Environment

from foul.erasure.clock import today
from foul.erasure.dashboard.curves import job_picture, job_pictures, learning_picture
from foul.erasure.dashboard.federation import Federation
from foul.erasure.dashboard.words import due_words, shortened, spans
from foul.erasure.policy import load_policy
from foul.erasure.receipts.chain import Chain
from foul.erasure.receipts.keys import fingerprint, spaced
from foul.erasure.receipts.page import cost_lines, moment, question, sentence, shown
from foul.erasure.records import Request
from foul.erasure.state import State
from foul.evaluation.metrics import METRICS
from foul.report.environment import page_environment
from foul.report.units import duration, operations, size
from foul.version import __version__

MANY = 500
"""Of more clients than these, only the first are listed."""


@cache
def _environment() -> Environment:
    environment = page_environment("foul.erasure.dashboard")
    environment.filters |= {
        "moment": moment,
        "size": size,
        "operations": operations,
        "duration": duration,
        "sentence": sentence,
        "spans": spans,
        "short": shortened,
        "spaced": spaced,
        "fingerprint": fingerprint,
    }
    environment.globals |= {"version": __version__, "shown": shown, "due_words": due_words}
    return environment


def _page(template: str, **facts: Any) -> str:
    return _environment().get_template(template).render(**facts)


def message_page(title: str, text: str) -> str:
    """A page that says one thing, such as that there is no such page."""
    return _page("message.html.j2", title=title, text=text)


def start_page(all_of_them: Sequence[Federation]) -> str:
    """Every federation with what is open."""
    rows = [(each, each.store().state()) for each in all_of_them]
    return _page("start.html.j2", rows=rows, today=today())


def overview_page(own: Federation) -> str:
    """What is in service, who takes part, what is open."""
    store = own.store()
    state = store.state()
    return _page(
        "overview.html.j2",
        own=own,
        state=state,
        today=today(),
        policy=load_policy(store.path),
        chain=own.receipts(),
        clients=sorted(state.clients.values(), key=lambda client: client.id not in state.erased),
        many=MANY,
        place="overview",
    )


def requests_page(
    own: Federation, form_token: str, problem: str = "", told: Mapping[str, str] | None = None
) -> str:
    """All requests, the most urgent first, and a form for a new one.

    Args:
        own: the federation.
        form_token: what a form of this server must send.
        problem: why the form was refused.
        told: what was in it.
    """
    state = own.store().state()
    return _page(
        "requests.html.j2",
        own=own,
        state=state,
        today=today(),
        requests=sorted(state.requests.values(), key=_urgency),
        domains=sorted({client.domain for client in state.active}),
        form_token=form_token,
        problem=problem,
        told=told or {},
        place="requests",
    )


def _urgency(request: Request) -> tuple[bool, str, int]:
    """Open ones by their due dates, then the others, newest first."""
    return not request.open, request.due if request.open else "", -request.number


def request_page(own: Federation, request: Request, state: State) -> str:
    """One request: its history, plan, evidence, costs and receipts."""
    job = state.jobs.get(request.job) if request.job is not None else None
    judged = job.evidence.get(str(request.number)) if job else None
    measured_again = [told for told in state.verified if told["request"] == request.number]
    verified = measured_again[-1] if measured_again else None
    chain = own.receipts()
    return _page(
        "request.html.j2",
        own=own,
        state=state,
        request=request,
        today=today(),
        job=job,
        judged=judged,
        verified=verified,
        evidence=_evidence(judged, verified),
        costs=list(cost_lines(job.result)) if job else [],
        picture=job_picture(job) if job else None,
        receipts=[link for link in chain.links if link.number in request.receipts],
        chain=chain,
        place="requests",
    )


def _evidence(
    judged: Mapping[str, Any] | None, verified: Mapping[str, Any] | None
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Names of the models that were measured, and of each figure what it is and its values."""
    models = {
        "Before": (judged or {}).get("before"),
        "After": (judged or {}).get("after"),
        "Verified": (verified or {}).get("after"),
        "Retrained": (verified or {}).get("retrain"),
    }
    measured = {name: figures for name, figures in models.items() if figures}
    rows = []
    for key in METRICS:
        values = [figures.get(key) for figures in measured.values()]
        if any(value is not None for value in values):
            cells = ["-" if value is None else shown(key, value) for value in values]
            rows.append((question(key), cells))
    return list(measured), rows


def receipts_page(own: Federation) -> str:
    """All receipts and whether they check out."""
    chain: Chain = own.receipts()
    return _page("receipts.html.j2", own=own, chain=chain, place="receipts")


def curves_page(own: Federation) -> str:
    """Accuracy per round of learning and of every unlearning."""
    store = own.store()
    learned = learning_picture(store.folder.records())
    pictures = [picture for picture in (learned, *job_pictures(store.state())) if picture]
    return _page("curves.html.j2", own=own, pictures=pictures, place="curves")


def lineage_page(own: Federation) -> str:
    """Which version of the model each client has touched."""
    state = own.store().state()
    return _page(
        "lineage.html.j2",
        own=own,
        state=state,
        clients=list(state.clients.values())[:MANY],
        many=MANY,
        place="lineage",
    )


def day(text: str) -> date | None:
    """A day from a form; None if it was left empty.

    Raises:
        ValueError: it is no day.
    """
    return date.fromisoformat(text) if text.strip() else None
