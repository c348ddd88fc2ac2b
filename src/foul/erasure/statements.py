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
from foul.erasure.records import Job, Request
from foul.erasure.state import State
from foul.version import __version__

_COSTS = (
    *("rounds", "bytes_down", "bytes_up", "flops_client", "flops_server", "seconds"),
    *("wall_seconds", "disk"),
)
_FIGURES = ("fa", "forget_test", "ra", "retain_test", "ta", "mia_accuracy", "k_probe", "v_probe")
"""What is told without a threshold; the attack's AUC is told with its interval."""
_HOW = {
    "delete": "deleted",
    "replace": "replaced",
    "rewrite": "rebuilt without it",
    "compact": "messages deleted, then compacted",
}


def erasure(state: State, job: Job, request: Request) -> Statement:
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
        _method(job),
        Models(state.versions[job.base].hash, job.model, job.model),
        _evidence(job.evidence[str(request.number)]),
        costs_of(job.result),
        purged=_purged(job),
        purge_check=_searched(job),
        kept=_kept(job),
    )


def failure(state: State, job: Job, request: Request, why: str) -> Statement:
    """A request was tried and the policy was not met: nothing has changed."""
    before = state.versions[job.base].hash
    return Statement(
        "failure",
        f"failure:{request.id}:J-{job.number}",
        state.federation,
        job.started,
        f"{job.method} did not meet the policy ({why}); the model before stays in service.",
        [_asked(request)],
        method=_method(job),
        models=Models(before, job.model, before),
        evidence=_evidence(job.evidence[str(request.number)]),
        costs=costs_of(job.result),
    )


def verification(state: State, told: dict[str, Any]) -> Statement:
    """The model in service was measured once more, perhaps beside one that was retrained."""
    request = state.requests[told["request"]]
    job = state.jobs[request.job or 0]
    missed = [check["what"] for check in told["checks"] if not check["passed"]]
    if not told["known"]:
        missed.insert(0, "the ledger does not know this model")
    policy = f"the policy is not met ({'; '.join(missed)})" if missed else "the policy is met"
    beside = " beside a model that was retrained without the data" if "retrain" in told else ""
    return Statement(
        "verification",
        f"verification:{request.id}:V-{told['count']}",
        state.federation,
        told["time"],
        f"The model in service was measured once more{beside}: {policy}.",
        [_asked(request)],
        request.clients,
        _method(job),
        Models(state.versions[job.base].hash, job.model, told["hash"]),
        _evidence(told),
        costs_of(job.result),
        told.get("retrain_costs", {}),
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
        f"readmission:{body['client']}:{body['count']}",
        state.federation,
        body["time"],
        f"Readmitted: {body['reason']}.",
        clients=[body["client"]],
    )


def _asked(request: Request) -> Asked:
    return Asked(request.id, request.text, request.received, request.due, request.reason)


def made_by(config: Config) -> dict[str, Any]:
    """What of the machine a receipt tells; noted when a model was made."""
    engine = "in-process" if config.engine == "local" else config.engine
    return {"version": __version__, "engine": engine, "seed": config.seed}


def _method(job: Job) -> MethodUsed:
    rounds, options = int(job.result["rounds"]), job.result["options"]
    made_by = job.result.get("made_by", {"version": "unknown"})
    return MethodUsed(job.method, options=options, rounds=rounds, **made_by)


def _evidence(told: dict[str, Any]) -> list[Evidence]:
    """Figures with those of the model before, and of a retrained one if there is one; thresholds of
    the policy with what they judge."""
    before, after, retrain = told["before"], told["after"], told.get("retrain", {})
    found = [
        Evidence(
            "mia_auc",
            "",
            after["mia_auc"],
            after["mia_low"],
            after["mia_high"],
            before["mia_auc"],
            retrain.get("mia_auc"),
        )
    ]
    found += [
        Evidence(key, "", after[key], before=before[key], retrain=retrain.get(key))
        for key in _FIGURES
    ]
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


def costs_of(result: dict[str, Any]) -> dict[str, float]:
    """What making a model took, as far as it was measured."""
    return {key: result[key] for key in _COSTS if result.get(key) is not None}


def _purged(job: Job) -> list[Purged]:
    """By kind: receipts need no list of files."""
    kinds: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for item in job.purge["items"]:
        if item["how"] != "keep":
            kinds[item["what"], _HOW[item["how"]]].append(item["bytes"])
    return [Purged(what, how, len(all_), sum(all_)) for (what, how), all_ in kinds.items()]


def _searched(job: Job) -> PurgeCheck:
    searched = job.purge["searched"]
    database = ", the engine's message database as well" if _compacted(job) else ""
    return PurgeCheck(
        "every file of the run was searched for the names of all clients that were erased so far "
        f"({searched['names']}) and for samples of the bytes that were removed "
        f"({searched['windows']}){database}",
        searched["files"],
        searched["bytes"],
        job.purge["found"],
    )


def _compacted(job: Job) -> bool:
    """Whether the engine had a database of its own."""
    return any(item["how"] == "compact" for item in job.purge["items"])


def _kept(job: Job) -> list[str]:
    kept = [f"{i['what']} ({i['path']}): {i['why']}" for i in job.purge["items"] if i["why"]]
    if _compacted(job):
        kept.append(
            "the engine's database lists their nodes by name and public key, and the commands of "
            "past runs: so they are known and can be kept out"
        )
    return [
        "the ledger, this receipt and the list of erased clients name them: so the erasure can be "
        "shown, and they cannot take part again",
        *kept,
    ]
