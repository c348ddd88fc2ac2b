"""A federation with a past, written entry by entry: no model is trained."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from small_runs import small_config

from erasure.receipts.statements import erasure, withdrawal
from foul.erasure.clock import today
from foul.erasure.ledger import Ledger
from foul.erasure.policy import Policy
from foul.erasure.receipts import issue_receipt
from foul.erasure.requests import file_request
from foul.erasure.store import Store
from foul.runs.folder import RunFolder

CLIENTS = ("north-0", "north-1", "east-0", "east-1", "<b>&amp;</b>")
BEFORE = {"fa": 0.97, "ra": 0.96, "ta": 0.88, "mia_auc": 0.66, "mia_low": 0.6, "mia_high": 0.72}
AFTER = {"fa": 0.52, "ra": 0.95, "ta": 0.87, "mia_auc": 0.51, "mia_low": 0.45, "mia_high": 0.57}


def new_store(run: Path, clients: tuple[str, ...] = CLIENTS) -> Store:
    """A store that has adopted a run of twelve rounds and was asked for nothing yet."""
    folder = RunFolder.create(run, small_config(), {"command": "", "classes": ["a", "b"]})
    for number in range(1, 13):
        accuracy = 0.9 - 0.8 / number
        folder.append({"stage": "learning", "round": number, "validation_accuracy": accuracy})
    (run / "erasure").mkdir()
    facts = [{"id": c, "domain": c.split("-")[0], "samples": {"train": 90}} for c in clients]
    body = {
        "federation": run.name,
        "basis": {},
        "clients": facts,
        "participation": {client: [[1, 5], [7, 12]] for client in clients},
        "hash": "a" * 64,
        "rounds": 12,
    }
    Ledger.create(run / "erasure/ledger.sqlite", "adopted", body)
    return Store.read(run)


def eventful_store(run: Path) -> Store:
    """One request done, one failed, one withdrawn, one planned, one new."""
    store = new_store(run)
    for whom in ("client:north-0", "client:east-0", "client:east-1", "domain:north"):
        file_request(store, whom, f"why {whom}, in so many words", today() + timedelta(days=9))
    serve(store, 1, 1, "north-0", AFTER, passed=True)
    issue(store, 1, erasure(1, event="erasure:R-0001"))
    figures = {"after": AFTER | {"fa": 0.51}, "retrain": AFTER | {"fa": 0.5}}
    store.append("verified", {"request": 1, "version": 1, "passed": True, **figures})
    verified = {"event": "verification:R-0001:V-1", "retrain_costs": {"rounds": 12}}
    issue(store, 1, erasure(1, kind="verification", **verified))
    serve(store, 2, 2, "east-0", AFTER | {"mia_high": 0.81}, passed=False)
    issue(store, 2, erasure(2, kind="failure", event="failure:R-0002:J-2"))
    store.append("withdrawn", {"request": 3, "note": "They changed their mind."})
    issue(store, 3, withdrawal(3))
    store.append("planned", {"request": 4, "plan": plan()})
    store.append("readmitted", {"client": "north-0", "reason": "They came back."})
    store.append(
        "relearned",
        {"version": 2, "hash": "c" * 64, "rounds": 3, "participation": {"north-0": [[1, 3]]}},
    )
    return store


def filed_in_the_past(store: Store, client: str, due: date) -> None:
    """A request that nobody could file today."""
    body = {"request": len(store.state().requests) + 1, "text": f"client:{client}"}
    rest = {"clients": [client], "reason": "", "due": due.isoformat(), "departed": False}
    store.append("filed", {**body, **rest})


def issue(store: Store, request: int, statement: Any) -> None:
    receipt = issue_receipt(store.path, statement)
    noted = {"receipt": receipt.number, "sha256": receipt.sha256, "event": statement.event}
    store.append("issued", {"request": request, **noted})


def serve(
    store: Store, request: int, job: int, client: str, after: dict[str, float], passed: bool
) -> None:
    """What the ledger holds of a job for one request."""
    checks = [
        check("mia_high", "upper end of the attack's AUC", after["mia_high"], at_most=0.7),
        check("ra", "loss of accuracy on retained data", 0.01, at_most=0.05),
        check("mia_low", "lower end of the attack's AUC", None, at_least=0.3),
    ]
    evidence = {"before": BEFORE, "after": after, "checks": checks, "passed": passed}
    started = {
        "requests": [request],
        "clients": [client],
        "method": "foul",
        "options": ["rounds=4"],
    }
    curve = [{"round": n, "fa": 0.97 - n / 10, "ra": 0.96 - n / 200} for n in range(5)]
    result = {"rounds": 4, "stopped": "target reached", "curve": curve, "bytes_up": 2_000_000}
    policy = Policy().model_dump(mode="json")
    store.append("started", {"job": job, **started, "base": 0, "policy": policy, "exact": False})
    store.append("unlearned", {"job": job, "model": "b" * 64, "file": "x", "result": result})
    told = {"job": job, "evidence": {str(request): evidence}, "passed": passed}
    store.append("judged", told)
    if not passed:
        store.append("failed", {"job": job, "note": "upper end of the attack's AUC: 0.810."})
        return
    store.append("promoted", {"job": job, "version": 1, "hash": "b" * 64})
    store.append("purged", {"job": job, "purge": {}})
    store.append("finished", {"job": job})


def check(
    key: str,
    what: str,
    value: float | None,
    at_most: float | None = None,
    at_least: float | None = None,
) -> dict[str, Any]:
    inside = (at_most is None or (value or 0) <= at_most) and value is not None
    limits = {"at_most": at_most, "at_least": at_least}
    return {"key": key, "what": what, "value": value, **limits, "passed": inside}


def plan() -> dict[str, Any]:
    """As `foul erase plan --json` prints it."""
    cost = {"rounds": 4, "bytes": 2_500_000, "flops": 3e9, "seconds": 9.0, "minutes": 0.1}
    usable = {"usable": True, "why_not": "", "options": [], "disk": 120_000, "within": 3.0, **cost}
    return {
        "recommended": "foul",
        "reason": "the first of foul, retrain (methods.prefer) that can serve it",
        "methods": [
            {"method": "foul", "exact": False, **usable},
            {"method": "retrain", "exact": True, **usable, "rounds": 12, "bytes": 90_000_000},
            {"method": "fedrecovery", "usable": False, "why_not": "no sum of contributions"},
        ],
        "purge": [{"what": "last update of north-0", "path": "deltas/north-0", "bytes": 1234}],
        "evidence": ["hashes of the weights before and after"],
        "together": {"requests": ["R-0005"], "cheaper": True},
    }
