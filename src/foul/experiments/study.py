"""Learn, erase by several methods, compare with Retrain: one study over requests and seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foul.client.worker import client_info
from foul.config.schema import Config
from foul.data import build_clients, load_dataset
from foul.errors import FoulError, UserError
from foul.evaluation.gaps import best_stop, distance, gaps, speeds
from foul.evaluation.stage import evaluate_run
from foul.experiments.store import ResultStore, key_of_request, slim
from foul.federation.build import Setting, opened
from foul.federation.messages import ClientInfo
from foul.federation.observer import Observer
from foul.learning.stage import learn
from foul.names import find, slug
from foul.report.curves import plot_curves
from foul.runs.folder import RunFolder
from foul.runs.results import add_results, read_results
from foul.unlearning.methods import make_method
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import unlearn

METHODS = ("none", "foul-paper", "foul", "continue", "retrain")
"""What a study runs unless it is told otherwise; `none` is the learned model."""


@dataclass(frozen=True)
class Study:
    """What to compare.

    Attributes:
        config: the learning stage; its seed is the first one.
        forget: requests like `domain:NAME`; empty: the last domain.
        methods: names of `foul methods`.
        seeds: how many seeds, counted up from the configuration's.
        options: `key=value` texts per method.
        keep_going: note a method that fails, and go on with the others.
        divergence: also measure KL to Retrain, and make pictures for the report.
    """

    config: Config
    forget: Sequence[str] = ()
    methods: Sequence[str] = METHODS
    seeds: int = 1
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keep_going: bool = False
    divergence: bool = True


@dataclass(frozen=True)
class Failure:
    """A method that gave no result for a request, and why."""

    method: str
    forget: str
    seed: int
    failed: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.method}, {self.forget}, seed {self.seed}: {self.failed}"


class SomeFailed(FoulError):
    """A study is complete but for some methods that failed: `results` are what the others gave."""

    def __init__(self, results: list[dict[str, Any]], failures: list[Failure]) -> None:
        self.results, self.failures = results, failures
        super().__init__(
            f"{len(failures)} of {len(failures) + len(results)} failed ({failures[0]})"
        )


def run_study(
    study: Study,
    out: str | Path,
    observer: Observer | None = None,
    store: ResultStore | None = None,
    command: str = "",
) -> list[dict[str, Any]]:
    """Run a study; killed at any moment, the same call goes on where it stopped.

    With one seed, `out` is the run folder; with several there is one run folder per seed in it.
    `out/results.json` lists one result per method, request and seed, and there is a picture of FA
    and RA per round for each request and seed. What `store` knows is not done again.

    Raises:
        UserError: an unknown method or request, or `out` holds something else.
        SomeFailed: with `keep_going`, when everything else is done and written.
    """
    observer, out = observer or Observer(), Path(out)
    requests = check(study, observer, RunFolder.open(out).clients() if started(out) else ())
    found: list[dict[str, Any]] = []
    failures: list[Failure] = []
    for number in range(study.seeds):
        config = study.config.model_copy(update={"seed": study.config.seed + number})
        folder = out if study.seeds == 1 else out / f"seed-{config.seed}"
        run = learn(config, folder, resume=started(folder), observer=observer, command=command)
        # One federation for all methods: its processes are warm, its data is loaded once.
        features, erased, known = run.path / "features", run.erased(), run.clients()
        with opened(config, observer, features, without=erased, known=known) as setting:
            run.require_same_data(setting.facts())
            for request in requests or (_last_domain(run),):
                results, failed = _serve(study, run, request, observer, store, setting)
                failures += failed
                if study.divergence:
                    results = _with_divergence(run, request, results, observer, setting)
                found += compared(results)
                add_results(out / "results.json", found)
                title = f"{config.data.name}, forgetting {request}, seed {config.seed}"
                plot_curves(results, run.path / f"forgetting-{slug(request)}.png", title)
    if failures:
        raise SomeFailed(found, failures)
    return found


def check(study: Study, observer: Observer, known: Sequence[ClientInfo] = ()) -> list[str]:
    """Refuse what can be seen to be wrong before an hour of learning, not after it.

    `known` are the clients of a run that was begun at nodes, some of which may be away.

    Returns:
        The requests as results are kept by them, each once however it was typed.

    Raises:
        UserError: an unknown method, option, domain or client, or a request that is none.
    """
    check_methods(study.methods, study.options)
    for request in study.forget:
        ForgetRequest.split(request)
    if not study.forget:
        return []
    clients = clients_of(study.config, observer, known)
    texts = [ForgetRequest.parse(request, clients).text for request in study.forget]
    return list(dict.fromkeys(texts))


def clients_of(
    config: Config, observer: Observer, known: Sequence[ClientInfo] = ()
) -> Sequence[ClientInfo]:
    """Who there is: it depends on the data. Decoded now, it is in the cache for learning."""
    if config.engine == "flower" and known:
        return known
    if config.engine == "flower":
        with opened(config, observer) as setting:
            return setting.federation.clients
    data = load_dataset(config.data, config.data_seed, observer.decoded)
    return [client_info(client) for client in build_clients(data, config.clients, config.seed)]


def check_methods(names: Sequence[str], options: Mapping[str, Sequence[str]]) -> None:
    """Refuse methods and options that there are none of.

    Raises:
        UserError: no method at all, or an unknown method or option.
    """
    if not names:
        raise UserError(
            "No method was chosen", "Name one of `foul methods`: --methods foul,retrain."
        )
    for name in names:
        make_method(name)
    for name, texts in options.items():
        make_method(name, texts)


def _serve(
    study: Study,
    run: RunFolder,
    request: str,
    observer: Observer,
    store: ResultStore | None,
    setting: Setting,
) -> tuple[list[dict[str, Any]], list[Failure]]:
    """The results of all methods for one request, and what failed, if the study goes on then."""
    results, failures = [], []
    for place, name in enumerate(study.methods):
        observer.on_work("methods", place, len(study.methods))
        try:
            results.append(_served(study, run, request, name, observer, store, setting))
        except Exception as error:
            if not study.keep_going:
                raise
            why = str(error) if isinstance(error, FoulError) else f"{type(error).__name__}: {error}"
            failures.append(Failure(name, request, run.config().seed, why))
            observer.on_message(f"failed: {failures[-1]}")
    observer.on_work("methods", len(study.methods), len(study.methods))
    return results, failures


def _served(
    study: Study,
    run: RunFolder,
    request: str,
    name: str,
    observer: Observer,
    store: ResultStore | None,
    setting: Setting,
) -> dict[str, Any]:
    """The result of one method for one request: from the store, or made now."""
    texts = study.options.get(name, ())
    key = key_of_request(run.config(), request, name, texts)
    known = store.get(key) if store else None
    if known is not None:
        return known
    result = unlearn(run.path, request, name, texts, observer, track=True, setting=setting)
    return store.put(key, result) if store else slim(result)


def _with_divergence(
    run: RunFolder,
    request: str,
    results: list[dict[str, Any]],
    observer: Observer,
    setting: Setting,
) -> list[dict[str, Any]]:
    """The results with their divergence from Retrain; pictures for the report are made too."""
    there = read_results(run.results_file)
    if not any("model" in known and known["forget"] == request for known in there):
        return results
    measured = evaluate_run(
        run.path,
        request,
        parts=("kl", "pictures"),
        observer=observer,
        missing_only=True,
        setting=setting,
    )
    told = {result["method"]: result for result in measured}
    return [
        result | {k: v for k, v in told.get(result["method"], {}).items() if k.startswith("kl_")}
        for result in results
    ]


def compared(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results with their gaps to Retrain and the best possible stop, where Retrain is there."""
    retrain = next((r for r in results if r["method"] == "retrain"), None)
    if retrain is None:
        return list(results)
    return [
        result
        | gaps(result, retrain)
        | speeds(result["curve"], retrain["fa"], result.get("learned_fa"))
        | {
            "distance": distance(result, retrain),
            "best_stop": best_stop(result["curve"], retrain),
        }
        for result in results
    ]


def started(folder: Path) -> bool:
    """Whether a run was begun here; anything else at this path is left to `learn` to refuse."""
    return (folder / "run.json").is_file()


def _last_domain(run: RunFolder) -> str:
    """The last domain as the configuration orders them, else by name."""
    present = sorted({client["domain"] for client in run.facts()["clients"]})
    ordered = [find(name, present) for name in run.config().data.domains]
    domains = [name for name in ordered if name] or present
    if len(domains) < 2:
        raise UserError(
            f"{run.path} has a single domain", "Say whom to forget: --forget client:ID."
        )
    return f"domain:{domains[-1]}"
