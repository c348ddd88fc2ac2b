"""One job: unlearn, judge, put the new model into service, purge, give receipts.

Every step is noted in the ledger when it is done and can be done again: killed at any moment, the
next call goes on with the job. Until the model is replaced, which is one rename, the old one is in
service; from the moment the evidence is accepted, its clients take part in nothing any more.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from foul.config.schema import Config
from foul.erasure import purge, statements
from foul.erasure.asking import federation_of
from foul.erasure.discard import discard
from foul.erasure.evidence import judge, measure
from foul.erasure.fingerprint import fingerprint
from foul.erasure.issuing import issue
from foul.erasure.policy import Accept, Purge
from foul.erasure.records import Job, Request
from foul.erasure.store import Store
from foul.erasure.summary import summarise
from foul.errors import UserError
from foul.federation.build import Setting
from foul.federation.messages import ClientInfo, Tensors
from foul.federation.observer import Observer
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import unlearn

_TOLD = (
    *("rounds", "bytes", "flops", "bytes_down", "bytes_up", "flops_client", "flops_server"),
    *("seconds", "wall_seconds", "disk", "stopped", "options"),
)
"""What the ledger keeps of a method's result."""
_CURVE = ("round", "forget_train", "validation_accuracy")
"""And of each of its rounds."""


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
                    "made_by": statements.made_by(self._config),
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
            give_up(self._store, self.job, f"{self.job.file} was lost or changed")
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
            request = state.requests[number]
            statement = statements.failure(state, job, request, told)
            issue(self._store, number, statement)
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
            statement = statements.erasure(state, self.job, request)
            issue(self._store, number, statement)
        self._store.append("finished", {"job": self.job.number})


def give_up(store: Store, job: Job, why: str) -> None:
    """End a job whose model will not be put into service; nothing of the attempt stays."""
    with store.folder.lock():
        discard(store.folder, job)
    purge.end(store, job)
    store.append("failed", {"job": job.number, "note": why})
