"""Serving requests: unlearn, judge, put the new model into service, purge, give receipts.

Every step is noted in the ledger when it is done and can be done again: killed at any moment, the
next call goes on with the job. Until the model is replaced, which is one rename, the old one is in
service; from the moment the evidence is accepted, its clients take part in nothing any more.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from typing import Any

from foul.config.schema import Config
from foul.erasure import purge, statements
from foul.erasure.evidence import judge, measure
from foul.erasure.fingerprint import fingerprint
from foul.erasure.plan import Offer, Planner, cheaper_together, forget_request
from foul.erasure.policy import Accept, Purge
from foul.erasure.receipts import Statement, issue_receipt, require_signing
from foul.erasure.requests import find_request, infos
from foul.erasure.state import WAITING, Job, Request, State
from foul.erasure.store import Store
from foul.errors import UserError
from foul.evaluation.accuracy import evaluate
from foul.federation.build import Setting, opened
from foul.federation.messages import ClientInfo, Tensors
from foul.federation.observer import Observer
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.folder import RunFolder
from foul.runs.results import read_results, write_results
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import label_of, unlearn

_TOLD = (
    *("rounds", "bytes", "flops", "bytes_down", "bytes_up", "flops_client", "flops_server"),
    *("seconds", "wall_seconds", "disk", "stopped", "options"),
)
"""What the ledger keeps of a method's result."""
_CURVE = ("round", "forget_train", "validation_accuracy")
"""And of each of its rounds."""


def run(
    store: Store,
    numbers: Sequence[int] = (),
    method: str | None = None,
    options: Sequence[str] = (),
    observer: Observer | None = None,
    config: Config | None = None,
) -> list[Job]:
    """Serve requests; first of all a job that was interrupted.

    Args:
        numbers: these requests, together. None: all that wait, together where that is cheaper.
        method: default: what the plan recommends.
        options: options of the method, as `key=value`.
        config: the run's configuration with other settings of the machine (device, engine).

    Raises:
        UserError: a request cannot be served as asked; the old model stays in service.
        QuorumError: too few clients answered; the same call goes on.
        MachineError: the disk is full, or the purge left something behind; the same call goes on.
    """
    observer, config = observer or Observer(), config or store.folder.config()
    done: list[Job] = []
    with store.serving():
        require_signing(store.path)
        state = store.sync()
        issue_missing(store, state)
        interrupted = state.unfinished
        if interrupted is None or interrupted.phase != "promoting":
            store.require_known_model()
        if interrupted and method and _gives_way(interrupted, numbers, method):
            # A method that cannot serve it is told before anything is given up.
            _offer(Planner(store, state), state, _requests(state, interrupted), method, options)
            _give_up(store, interrupted, f"given up for {method}")
            numbers = numbers or interrupted.requests
        elif interrupted:
            observer.on_message(f"Going on with job {interrupted.number}, which was interrupted")
            done.append(Service(store, interrupted, observer, config).run())
        wanted = _unserved(store.state(), numbers, observer)
        while job := _next_job(store, wanted if numbers else None, method, options):
            done.append(Service(store, job, observer, config).run())
            wanted = []
            if numbers:
                break
    return done


def _unserved(state: State, numbers: Sequence[int], observer: Observer) -> list[int]:
    """Requests that are still to serve: a command that is repeated after a kill says the same."""
    done = [number for number in numbers if find_request(state, number).state == "done"]
    for number in done:
        observer.on_message(f"{state.requests[number].id} is done")
    return [number for number in numbers if number not in done]


def _next_job(
    store: Store, numbers: Sequence[int] | None, method: str | None, options: Sequence[str]
) -> Job | None:
    """Begin the next job, if there is anything to do."""
    state = store.state()
    if numbers is None:
        waiting = state.waiting()
        chosen = [r for r in waiting if r.departed == waiting[0].departed] if waiting else []
    else:
        chosen = [_servable(state, number) for number in numbers]
    if not chosen:
        return None
    planner = Planner(store, state)
    if numbers is None and len(chosen) > 1:
        one = _offer(planner, state, chosen[:1], method, options)
        if not cheaper_together(planner, state, chosen, one.method):
            chosen = chosen[:1]
    offer = _offer(planner, state, chosen, method, options)
    clients = _union(state, chosen)
    covered = [
        request
        for request in state.requests.values()
        if request.state in WAITING
        and request not in chosen
        and state.clients_of(request)
        and set(state.clients_of(request)) <= set(clients)
    ]
    number = len(state.jobs) + 1
    body: dict[str, Any] = {
        "job": number,
        "requests": sorted(request.number for request in (*chosen, *covered)),
        "clients": clients,
        "method": offer.method,
        "options": list(offer.options),
        "exact": offer.exact,
        "base": state.current.number,
        "policy": planner.policy.model_dump(mode="json"),
    }
    store.decide("started", lambda now: _still_waiting(now, body))
    return store.state().jobs[number]


def _still_waiting(state: State, body: dict[str, Any]) -> dict[str, Any]:
    """A request may have been withdrawn while the plan was made."""
    for number in body["requests"]:
        _servable(state, number)
    return body


def _servable(state: State, number: int) -> Request:
    request = find_request(state, number)
    if request.state not in WAITING:
        raise UserError(
            f"{request.id} is {request.state} and cannot be run",
            "`foul erase list` shows what waits.",
        )
    return request


def _offer(
    planner: Planner,
    state: State,
    requests: Sequence[Request],
    method: str | None,
    options: Sequence[str],
) -> Offer:
    """The method that serves these requests.

    Raises:
        UserError: it cannot, or nobody would be left.
    """
    clients, departed = _union(state, requests), any(r.departed for r in requests)
    target = forget_request(state, clients)
    if method is None:
        offer, _ = planner.recommended(planner.offers(clients, departed))
        return planner.offer(offer.method, options, target, departed) if options else offer
    if method == "none":
        raise UserError("'none' forgets nothing", "Choose a method of `foul erase plan`.")
    offer = planner.offer(method, options, target, departed)
    if not offer.usable:
        raise UserError(
            f"'{method}' cannot serve this: {offer.why_not}",
            "`foul erase plan` says which methods can.",
        )
    return offer


def _union(state: State, requests: Sequence[Request]) -> list[str]:
    clients = sorted({c for request in requests for c in state.clients_of(request)})
    if not clients:
        raise UserError(
            f"Everybody in {', '.join(r.id for r in requests)} was erased already",
            "Withdraw the request: foul erase withdraw RUN REQUEST",
        )
    return clients


def _gives_way(job: Job, numbers: Sequence[int], method: str) -> bool:
    """Whether an interrupted job ends for another method: only if its own requests are asked for,
    and its evidence was not accepted yet."""
    meant = not numbers or set(numbers) & set(job.requests)
    return bool(meant) and method != job.method and job.phase in ("unlearning", "verifying")


def _requests(state: State, job: Job) -> list[Request]:
    return [state.requests[number] for number in job.requests]


def _give_up(store: Store, job: Job, why: str) -> None:
    discard(store.folder, job)
    purge.end(store, job)
    store.append("failed", {"job": job.number, "note": why})


class Service:
    """One job, from wherever it stands to its end."""

    def __init__(self, store: Store, job: Job, observer: Observer, config: Config) -> None:
        self._store, self._folder, self._observer = store, store.folder, observer
        self._config = config
        self.job = job
        self._open = ExitStack()

    def run(self) -> Job:
        """Do what is left to do."""
        steps: dict[str, Callable[[], None]] = {
            "unlearning": self._unlearn,
            "verifying": self._verify,
            "promoting": self._promote,
            "purging": self._purge,
            "receipts": self._give_receipts,
        }
        with self._open:
            while not self.job.finished:
                steps[self.job.phase]()
                self.job = self._store.state().jobs[self.job.number]
        return self.job

    @cached_property
    def _setting(self) -> Setting:
        """The federation with the job's clients still in it: they are asked a last time."""
        state = self._store.state()
        return self._open.enter_context(
            federation_of(self._store, state, self.job.clients, self._config, self._observer)
        )

    @property
    def _text(self) -> str:
        return f"client:{','.join(self.job.clients)}"

    def _unlearn(self) -> None:
        job = self.job
        result = unlearn(
            self._folder.path,
            self._text,
            job.method,
            job.options,
            self._observer,
            setting=self._setting,
            config=self._config,
            # The evidence is measured afterwards, request by request.
            measured=False,
        )
        tensors, _ = load_tensors(self._folder.path / result["model"])
        self._store.append(
            "unlearned",
            {
                "job": job.number,
                "model": fingerprint(tensors),
                "file": result["model"],
                "result": {
                    **{key: result.get(key) for key in _TOLD},
                    "curve": [
                        {key: record.get(key) for key in _CURVE} for record in result["records"]
                    ],
                },
            },
        )

    def _verify(self) -> None:
        """Measure both models with respect to each request, and judge."""
        if not self.job.evidence:
            evidence = self._measured()
            passed = all(told["passed"] for told in evidence.values())
            self._store.append(
                "judged", {"job": self.job.number, "evidence": evidence, "passed": passed}
            )
            self.job = self._store.state().jobs[self.job.number]
            if passed:
                return
        self._fail()

    def _measured(self) -> dict[str, Any]:
        state, job = self._store.state(), self.job
        old, new = self._folder.load_model("learned")[0], self._candidate()
        evidence: dict[str, Any] = {}
        for position, number in enumerate(job.requests):
            self._observer.on_work("measuring both models", position, len(job.requests))
            request = state.requests[number]
            target, reachable = self._target(request), not request.departed
            before, after = (
                measure(self._setting, self._config, tensors, target, reachable)
                for tensors in (old, new)
            )
            accept = Accept.model_validate(job.policy["accept"])
            checks = judge(before, after, accept, job.exact)
            unchanged = judge(before, before, accept, job.exact)
            evidence[str(number)] = {
                "before": before,
                "after": after,
                "checks": [check.to_dict() for check in checks],
                "told": [str(check) for check in checks if not check.passed],
                "passed": all(check.passed for check in checks),
                # Limits that the old model meets as well show no forgetting by themselves.
                "before_passed": all(check.passed for check in unchanged),
            }
        self._observer.on_work("measuring both models", len(job.requests), len(job.requests))
        return evidence

    def _target(self, request: Request) -> ForgetRequest:
        """The request's own clients against everybody whom the job retains."""
        clients = self._setting.federation.clients
        own = tuple(c for c in clients if c.id in request.clients and c.id in self.job.clients)
        return ForgetRequest(request.text, own, tuple(self._retained()))

    def _retained(self) -> list[ClientInfo]:
        return [c for c in self._setting.federation.clients if c.id not in self.job.clients]

    def _candidate(self) -> Tensors:
        """The model that the job made.

        Raises:
            UserError: it is gone or was changed; the job has failed then.
        """
        file = self._folder.path / self.job.file
        tensors = load_tensors(file)[0] if file.is_file() else {}
        if fingerprint(tensors) != self.job.model:
            _give_up(self._store, self.job, f"{self.job.file} was lost or changed")
            self._store.sync()
            raise UserError(
                f"The model that job {self.job.number} made ({file}) was lost or changed",
                "The old model stays in service; run the request again.",
            )
        return tensors

    def _fail(self) -> None:
        """The policy was not met: nothing has changed, and nothing of the attempt stays."""
        job, state = self.job, self._store.state()
        for number in job.requests:
            told = "; ".join(job.evidence[str(number)]["told"]) or "another request served with it"
            self._issue(
                number, statements.failure(state, job, state.requests[number], self._config, told)
            )
        reasons = [text for told in job.evidence.values() for text in told["told"]]
        with self._folder.lock():
            discard(self._folder, job)
        self._store.append(
            "failed", {"job": job.number, "note": f"policy missed: {'; '.join(reasons)}"}
        )

    def _promote(self) -> None:
        """Put the new model into service: one rename."""
        job = self.job
        state = self._store.sync()
        retained = self._retained()
        old, numbers = self._folder.load_model("learned")
        new = old
        if fingerprint(old) != job.model:
            new = self._candidate()
        purge.prepare(self._store, state, job, self._config)
        if new is not old:
            with self._folder.lock():
                self._keep_old(old, numbers)
                self._folder.save_model("learned", new, {**numbers, "version": self._version})
        summarise(self._folder, self._setting, new, retained)
        self._store.append(
            "promoted", {"job": job.number, "version": self._version, "hash": job.model}
        )

    @property
    def _version(self) -> int:
        return len(self._store.state().versions)

    def _keep_old(self, tensors: Tensors, numbers: dict[str, Any]) -> None:
        if Purge.model_validate(self.job.policy["purge"]).old_model == "keep":
            self._store.kept.mkdir(exist_ok=True)
            file = self._store.kept / f"version-{self.job.base}.safetensors"
            save_tensors(file, tensors, numbers)

    def _purge(self) -> None:
        state = self._store.state()
        done = purge.purge(self._store, state, self.job, self._observer)
        self._store.append("purged", {"job": self.job.number, "purge": done})

    def _give_receipts(self) -> None:
        purge.end(self._store, self.job)
        state = self._store.state()
        for number in self.job.requests:
            request = state.requests[number]
            self._issue(number, statements.erasure(state, self.job, request, self._config))
        self._store.append("finished", {"job": self.job.number})

    def _issue(self, request: int, statement: Statement) -> None:
        issue(self._store, request, statement)


def federation_of(
    store: Store, state: State, clients: Collection[str], config: Config, observer: Observer
) -> AbstractContextManager[Setting]:
    """The federation without its erased clients, but for these, who are asked a last time."""
    erased = state.erased.keys() - set(clients)
    known = infos([client for client in state.clients.values() if client.id not in erased])
    features = store.folder.path / "features"
    return opened(config, observer, features, without=erased, known=known)


def issue(store: Store, request: int | None, statement: Statement) -> None:
    """Give a receipt and note it; what is there already is not given twice."""
    receipt = issue_receipt(store.path, statement)
    known = [entry.body for entry in store.entries() if entry.kind == "issued"]
    if receipt.number not in [body["receipt"] for body in known]:
        body = {"request": request, "receipt": receipt.number, "sha256": receipt.sha256}
        store.append("issued", {**body, "event": statement.event})


def issue_missing(store: Store, state: State) -> None:
    """Receipts of withdrawals and readmissions that a kill prevented."""
    given = {entry.body["event"] for entry in store.entries() if entry.kind == "issued"}
    statement: Statement
    for request in state.requests.values():
        if request.state == "withdrawn":
            statement = statements.withdrawal(state, request)
            if statement.event not in given:
                issue(store, request.number, statement)
    for body in state.readmitted:
        if statements.readmission_event(body) not in given:
            issue(store, None, statements.readmission(state, body))


def summarise(
    folder: RunFolder, setting: Setting, tensors: Tensors, clients: Sequence[ClientInfo]
) -> None:
    """Write what the model in service can do now; what learning took stays."""
    found = evaluate(setting.federation, tensors, clients=clients)
    told = {"accuracy": found.to_dict(), "not_evaluated": found.missing}
    folder.write_summary(folder.summary() | told)


def discard(folder: RunFolder, job: Job) -> None:
    """Remove what an attempt made: nobody shall take its model for an accepted one."""
    discard_model(folder, job.method, f"client:{','.join(job.clients)}")


def discard_model(folder: RunFolder, method: str, text: str) -> None:
    """Remove the model that a method made for a request, and all files about it."""
    label = label_of(method, text)
    for file in (
        folder.models / f"{label}.safetensors",
        folder.path / "unlearning" / f"{label}.safetensors",
        folder.evaluation / f"{label}.json",
    ):
        file.unlink(missing_ok=True)
    results = read_results(folder.results_file)
    others = [r for r in results if (r["method"], r["forget"]) != (method, text)]
    if len(others) < len(results):
        write_results(folder.results_file, others)
