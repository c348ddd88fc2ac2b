"""Evaluation as part of a run: any figure again, from its checkpoints."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.errors import UserError
from foul.evaluation.divergence import divergence
from foul.evaluation.forgetting import accuracies, assess
from foul.evaluation.pictures import latent_maps, reconstructions
from foul.evaluation.relearn import relearn
from foul.federation.build import Setting, opened
from foul.federation.messages import Tensors
from foul.federation.observer import Observer
from foul.names import hint
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.folder import RunFolder
from foul.runs.results import Result, add_results, read_results
from foul.unlearning.request import ForgetRequest
from foul.unlearning.saved import label_of

PARTS = ("forgetting", "kl", "pictures", "relearn")
"""What can be measured: accuracy, attacks, probes and backdoor; divergence from Retrain; pictures
of the learned model's latents; rounds until the forgotten is back."""
DEFAULT_PARTS = PARTS[:3]
"""All but relearning, which trains for some rounds."""

_REFERENCES = ("retrain", "retrain-again")


def evaluate_run(
    run: str | Path,
    forget: str | None = None,
    methods: Sequence[str] | None = None,
    parts: Sequence[str] = DEFAULT_PARTS,
    observer: Observer | None = None,
    missing_only: bool = False,
    setting: Setting | None = None,
    config: Config | None = None,
) -> list[Result]:
    """Measure the models of a run; figures go to `results.json` and `evaluation/`.

    Args:
        run: a run folder with results.
        forget: only this request; default: all.
        methods: only these; default: all that ran.
        parts: of `PARTS`.
        missing_only: leave alone what was measured of the same model before.
        setting: the run's federation, if it is open already; it stays open.
        config: the run's configuration with other settings of the machine (device, engine).

    Raises:
        UserError: there is nothing to measure, or a model is gone; says which command makes it.
    """
    observer, folder = observer or Observer(), RunFolder.open(Path(run))
    for part in parts:
        if part not in PARTS:
            raise UserError(f"Nothing called '{part}' can be measured", hint(part, PARTS))
    chosen = _chosen(folder, forget, methods)
    if not chosen:
        return []
    features, erased = folder.path / "features", folder.erased()
    config, known = config or folder.config(), folder.clients()
    # Pictures show single images, which never leave a node.
    drawn = "pictures" in parts and config.engine != "flower"
    if len(parts) == 1 and "pictures" in parts and not drawn:
        raise UserError(
            "Pictures show clients' images, which do not leave their nodes (engine=flower)",
            "Measure something else with --parts.",
        )
    with opened(config, observer, features, setting, erased, known) as ready:
        folder.require_same_data(ready.facts())
        with folder.lock():
            # They are the learned model's, which no method changes: made once, unless asked for.
            if drawn and (len(parts) == 1 or not _pictures(folder).is_file()):
                _draw(folder, ready)
            evaluator = _Evaluator(folder, ready, parts, missing_only)
            found = []
            for number, result in enumerate(chosen):
                observer.on_work("evaluating models", number, len(chosen))
                found.append(evaluator.measure(result))
                # At once: stopped here, the next call finds this model measured.
                add_results(folder.results_file, found[-1:])
            observer.on_work("evaluating models", len(chosen), len(chosen))
    return found


class _Evaluator:
    """Measures one model after the other, with one federation."""

    def __init__(
        self, folder: RunFolder, setting: Setting, parts: Sequence[str], missing_only: bool
    ) -> None:
        self._folder, self._setting = folder, setting
        self._parts, self._missing_only = parts, missing_only
        self._all = read_results(folder.results_file)
        self._floors: dict[str, dict[str, float | None]] = {}

    def measure(self, result: Result) -> Result:
        """The result with what was measured now."""
        label = label_of(result["method"], result["forget"])
        known = self._folder.load_evaluation(label)
        if known.get("identity") != result.get("identity"):
            known = {}
        model = self._model(result)
        request = ForgetRequest.parse(result["forget"], self._setting.federation.clients)
        # By the name it is kept under: an older run's need not be sorted.
        request = replace(request, text=result["forget"])
        told: dict[str, Any] = {}
        measured = {key: result.get(key) for key in ("method", "forget", "identity")}
        if self._wanted("forgetting", "attacks" in known):
            now = assess(self._setting.federation, model, request, self._folder.config().backdoor)
            measured |= now.detail()
            told |= now.summary()
        if self._wanted("kl", known.get("kl_to") == self._references(request)):
            measured |= self._divergences(model, request)
        for kind, value in (measured.get("kl", known.get("kl")) or {}).items():
            told[f"kl_{kind}"] = value
        if self._wanted("relearn", "relearn" in known):
            relearned = self._relearned(model, request)
            measured["relearn"] = relearned
            told["relearn"] = relearned["rounds"]
        self._folder.save_evaluation(label, measured)
        return result | told

    def _wanted(self, part: str, known: bool) -> bool:
        return part in self._parts and not (self._missing_only and known)

    def _model(self, result: Result) -> Tensors:
        path = self._folder.path / result.get("model", "(no model)")
        if not path.is_file():
            raise UserError(
                f"{path} is gone",
                f"Make it again: foul unlearn {self._folder.path} --forget {result['forget']} "
                f"--method {result['method']}",
            )
        return load_tensors(path)[0]

    def _divergences(self, model: Tensors, request: ForgetRequest) -> dict[str, Any]:
        """KL to Retrain, and as its floor that of another Retrain; None where there is none."""
        retrain, again = (self._other(method, request) for method in _REFERENCES)
        told: dict[str, Any] = {"kl": None, "kl_floor": None, "kl_to": self._references(request)}
        if retrain is None:
            return told
        federation, reference = self._setting.federation, self._model(retrain)
        told["kl"] = divergence(federation, model, reference, request)
        if again is not None:
            # The same for every method of a request.
            if request.text not in self._floors:
                other = self._model(again)
                self._floors[request.text] = divergence(federation, other, reference, request)
            told["kl_floor"] = self._floors[request.text]
        return told

    def _references(self, request: ForgetRequest) -> list[str | None]:
        """Which models the divergence is told from: others make another figure."""
        found = (self._other(method, request) for method in _REFERENCES)
        return [None if other is None else other.get("identity") for other in found]

    def _other(self, method: str, request: ForgetRequest) -> Result | None:
        """The result of this method for the same request, if it has a model here."""
        for result in self._all:
            same = (result["method"], result["forget"]) == (method, request.text)
            if same and "model" in result:
                return result
        return None

    def _relearned(self, model: Tensors, request: ForgetRequest) -> dict[str, Any]:
        learned, _ = self._folder.load_model("learned")
        federation = self._setting.federation
        target = accuracies(federation, learned, request)["fa"] or 0.0
        learning = self._folder.config().learning
        found = relearn(federation, model, learning, request, self._setting.buffers, target)
        return {"rounds": found.rounds, "curve": found.curve, "target": found.target}


def _chosen(folder: RunFolder, forget: str | None, methods: Iterable[str] | None) -> list[Result]:
    """The results to measure.

    Raises:
        UserError: there are none.
    """
    results = read_results(folder.results_file)
    if not results:
        raise UserError(
            f"{folder.path} has no results yet",
            f"Make some: foul unlearn {folder.path} --forget domain:NAME",
        )
    requests = list(dict.fromkeys(result["forget"] for result in results))
    if forget is not None and forget not in requests:
        forget = ForgetRequest.parse(forget, folder.clients()).text
    if forget is not None and forget not in requests:
        raise UserError(
            f"{folder.path} has not forgotten {forget}",
            f"It has {', '.join(requests)}; or: foul unlearn {folder.path} --forget {forget}",
        )
    chosen = [
        result
        # Figures that came from a store have no model here; a method asked for by name must have.
        for result in results
        if forget in (None, result["forget"]) and (methods or "model" in result)
    ]
    ran = {result["method"] for result in chosen}
    for method in methods or ():
        if method not in ran:
            raise UserError(
                f"'{method}' did not run in {folder.path}",
                f"Run it: foul unlearn {folder.path} --forget {chosen[0]['forget']} "
                f"--method {method}",
            )
    return [result for result in chosen if methods is None or result["method"] in methods]


def _pictures(folder: RunFolder) -> Path:
    return folder.evaluation / "pictures.safetensors"


def _draw(folder: RunFolder, setting: Setting) -> None:
    """Pictures of the learned model."""
    learned, _ = folder.load_model("learned")
    maps, domains = latent_maps(setting.federation, learned)
    images = reconstructions(setting.federation, learned)
    folder.evaluation.mkdir(exist_ok=True)
    names = {"domains": domains, "classes": list(setting.classes)}
    save_tensors(_pictures(folder), images | maps, names)
