"""What receipts state, taken from the ledger."""

from collections import defaultdict
from typing import Any

from foul.config.schema import Config
from foul.erasure.receipts import (
    Asked,
    Evidence,
    MethodUsed,
    Models,
    PurgeCheck,
    Purged,
    Statement,
)
from foul.erasure.state import Job, Request, State
from foul.version import __version__

_COSTS = ("rounds", "bytes_down", "bytes_up", "flops_client", "flops_server", "seconds")
_FIGURES = ("fa", "forget_test", "ra", "retain_test", "ta", "mia_accuracy", "k_probe", "v_probe")
"""What is told without a threshold; the attack's AUC is told with its interval."""
_HOW = {"delete": "deleted", "replace": "replaced", "rewrite": "rebuilt without it"}


def erasure(state: State, job: Job, request: Request, config: Config) -> Statement:
    """A request was served and everything stored about its clients is gone."""
    others = len(job.requests) - 1
    together = f", together with {others} other request{'s' * (others > 1)}" if others else ""
    before = [c for c in request.clients if c not in job.clients]
    earlier = f" {', '.join(before)} had been erased before." if before else ""
    if job.evidence[str(request.number)].get("before_passed") and not job.exact:
        earlier += " The model before met the policy's limits, too: compare the figures."
    kind = "exact: the new model never saw their data" if job.exact else "approximate"
    return Statement(
        "erasure",
        f"erasure:{request.id}:J-{job.number}",
        state.federation,
        job.started,
        f"Erased by {job.method} ({kind}){together}; the policy is met.{earlier}",
        [_asked(request)],
        [client for client in request.clients if client in job.clients],
        _method(job, config),
        Models(state.versions[job.base].hash, job.model, job.model),
        _evidence(job, request),
        _costs(job),
        _purged(job),
        _searched(job),
        _kept(job),
    )


def failure(state: State, job: Job, request: Request, config: Config, why: str) -> Statement:
    """A request was tried and the policy was not met: nothing has changed."""
    before = state.versions[job.base].hash
    return Statement(
        "failure",
        f"failure:{request.id}:J-{job.number}",
        state.federation,
        job.started,
        f"{job.method} did not meet the policy ({why}); the model before stays in service.",
        [_asked(request)],
        method=_method(job, config),
        models=Models(before, job.model, before),
        evidence=_evidence(job, request),
        costs=_costs(job),
    )


def withdrawal(state: State, request: Request) -> Statement:
    """A request was taken back."""
    why = f": {request.note}" if request.note else ""
    return Statement(
        "withdrawal",
        f"withdrawal:{request.id}",
        state.federation,
        request.ended or request.received,
        f"The request was withdrawn{why}.",
        [_asked(request)],
    )


def readmission(state: State, body: dict[str, Any]) -> Statement:
    """An erased client may take part again."""
    return Statement(
        "readmission",
        readmission_event(body),
        state.federation,
        body["time"],
        f"Readmitted: {body['reason']}.",
        clients=[body["client"]],
    )


def readmission_event(body: dict[str, Any]) -> str:
    return f"readmission:{body['client']}:{body['time']}"


def _asked(request: Request) -> Asked:
    return Asked(request.id, request.text, request.received, request.due, request.reason)


def _method(job: Job, config: Config) -> MethodUsed:
    engine = "in-process" if config.engine == "local" else config.engine
    rounds = int(job.result.get("rounds", 0))
    options = job.result.get("options", {})
    return MethodUsed(job.method, __version__, options, rounds, engine, config.seed)


def _evidence(job: Job, request: Request) -> list[Evidence]:
    """Figures with those of the model before; thresholds of the policy with what they judge."""
    told = job.evidence[str(request.number)]
    before, after = told["before"], told["after"]
    found = [
        Evidence(
            "mia_auc",
            "",
            after["mia_auc"],
            after["mia_low"],
            after["mia_high"],
            before["mia_auc"],
        )
    ]
    found += [Evidence(key, "", after[key], before=before[key]) for key in _FIGURES]
    found += [
        Evidence(
            f"check_{check['key']}",
            check["what"],
            check["value"],
            at_most=check["at_most"],
            at_least=check["at_least"],
            passed=check["passed"],
        )
        for check in told["checks"]
    ]
    return found


def _costs(job: Job) -> dict[str, float]:
    costs = {key: job.result[key] for key in _COSTS if key in job.result}
    for key, name in (("wall_seconds", "wall_seconds"), ("disk", "disk")):
        if job.result.get(key) is not None:
            costs[name] = job.result[key]
    return costs


def _purged(job: Job) -> list[Purged]:
    """By kind: receipts need no list of files."""
    kinds: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for item in job.purge["items"]:
        if item["how"] != "keep":
            kinds[item["what"], _HOW.get(item["how"], "compacted")].append(item["bytes"])
    return [Purged(what, how, len(all_), sum(all_)) for (what, how), all_ in kinds.items()]


def _searched(job: Job) -> PurgeCheck:
    searched = job.purge["searched"]
    return PurgeCheck(
        f"every file of the run was searched for the names of {searched['names']} erased clients "
        f"and for {searched['windows']} samples of the bytes that were removed",
        searched["files"],
        searched["bytes"],
        job.purge["found"],
    )


def _kept(job: Job) -> list[str]:
    kept = [f"{i['what']} ({i['path']}): {i['why']}" for i in job.purge["items"] if i["why"]]
    return [
        "the ledger, this receipt and the list of erased clients name them: so the erasure can be "
        "shown, and they cannot take part again",
        *kept,
    ]
