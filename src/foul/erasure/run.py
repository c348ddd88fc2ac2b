"""Serving requests: the job that was interrupted first, then one after the other."""

from collections.abc import Sequence

from foul.config.schema import Config
from foul.erasure.choice import begin_job, choose_method
from foul.erasure.issuing import issue_missing
from foul.erasure.plan import Planner
from foul.erasure.receipts import require_signing
from foul.erasure.records import Job
from foul.erasure.requests import find_request
from foul.erasure.service import Service, give_up
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.federation.observer import Observer


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
            own = [state.requests[number] for number in interrupted.requests]
            choose_method(Planner(store, state), state, own, method, options)
            give_up(store, interrupted, f"given up for {method}")
            numbers = numbers or interrupted.requests
        elif interrupted:
            observer.on_message(f"Going on with job {interrupted.number}, which was interrupted")
            done.append(Service(store, interrupted, observer, config).run())
        wanted = _unserved(store.state(), numbers, done, observer)
        while job := begin_job(store, wanted if numbers else None, method, options):
            done.append(Service(store, job, observer, config).run())
            wanted = []
            if numbers:
                break
    return done


def _unserved(
    state: State, numbers: Sequence[int], ended: Sequence[Job], observer: Observer
) -> list[int]:
    """Requests that are still to serve: a command that is repeated after a kill says the same, and
    what has just failed is not tried again."""
    done = [number for number in numbers if find_request(state, number).state == "done"]
    for number in done:
        observer.on_message(f"{state.requests[number].id} is done")
    tried = {number for job in ended for number in job.requests}
    return [number for number in dict.fromkeys(numbers) if number not in tried.union(done)]


def _gives_way(job: Job, numbers: Sequence[int], method: str) -> bool:
    """Whether an interrupted job ends for another method: only if its own requests are asked for,
    and its evidence was not accepted yet."""
    meant = not numbers or set(numbers) & set(job.requests)
    return bool(meant) and method != job.method and job.phase in ("unlearning", "verifying")
