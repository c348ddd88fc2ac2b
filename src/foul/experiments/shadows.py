"""U-LiRA: could an attacker tell an unlearned model from one that never saw the data?

Each shadow draws anew what its clients train on, learns, forgets a domain by some methods, and is
retrained without it. A sample of the domain is then answered by models that saw and unlearned it,
and by models that never saw it; the attack is a likelihood ratio between the two, per sample. The
retrained shadows are the same for every method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foul.config.schema import Config
from foul.errors import UserError
from foul.evaluation.attacks import STATISTICS, judge
from foul.evaluation.attacks.shadows import shadow_lira, u_lira
from foul.experiments.study import check_methods, clients_of
from foul.federation.build import Setting, opened
from foul.federation.federation import EVALUATION, RoundLog
from foul.federation.messages import Tensors
from foul.federation.observer import Observer
from foul.learning.stage import learn
from foul.models import deployed_state
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.folder import RunFolder
from foul.seeds import numpy_generator
from foul.unlearning.request import ForgetRequest
from foul.unlearning.saved import label_of
from foul.unlearning.stage import unlearn

REFERENCE = "retrain"
SHARE = 0.5
"""A sample is in half of the shadows' training data."""


@dataclass(frozen=True)
class ShadowStudy:
    """What to attack.

    Attributes:
        config: how a shadow learns; its seed is the first shadow's.
        forget: a request for whole domains.
        methods: names of `foul methods`; on `none`, the learned model, the attack must work.
        shadows: how many pairs of an unlearned and a retrained model.
        options: `key=value` texts per method.
    """

    config: Config
    forget: str
    methods: Sequence[str] = ("none", "foul")
    shadows: int = 16
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)


def run_shadows(
    study: ShadowStudy, out: str | Path, observer: Observer | None = None
) -> list[dict[str, Any]]:
    """Make the shadows and attack; stopped at any moment, the same call goes on.

    Returns:
        One row per method and attack (`lira`: is the sample in the training data; `u-lira`: was it
        unlearned or never seen), with the figures of `AttackResult`.

    Raises:
        UserError: the study cannot be made.
    """
    observer, out = observer or Observer(), Path(out)
    study = replace(study, forget=_check(study, observer).text)
    methods = [name for name in study.methods if name != REFERENCE]
    shadows = []
    for number in range(study.shadows):
        observer.on_message(f"shadow {number + 1} of {study.shadows}")
        shadows.append(_shadow(study, [*methods, REFERENCE], number, out, observer))
    margins = {
        name: np.stack([_dense(shadow[name], "margins") for shadow in shadows])
        for name in (*methods, REFERENCE)
    }
    split = np.stack([_dense(shadow[REFERENCE], "split") for shadow in shadows])
    members, others = split == _SPLITS.index("train"), split == _SPLITS.index("test")
    rows = []
    for name in (*methods, REFERENCE):
        attacks = {"lira": shadow_lira(margins[name], members, others)}
        if name != REFERENCE:
            attacks["u-lira"] = u_lira(margins[name], margins[REFERENCE], members)
        for attack, groups in attacks.items():
            rng = numpy_generator(study.config.seed, f"attack/{attack}/{name}")
            rows.append(
                {
                    "method": name,
                    "attack": attack,
                    "forget": study.forget,
                    "shadows": study.shadows,
                    **judge(*groups, rng).to_dict(),
                }
            )
    return rows


_SPLITS = ("train", "validation", "test")


def _check(study: ShadowStudy, observer: Observer) -> ForgetRequest:
    """Whom to forget; refuse what can be seen to be wrong before the first shadow learns.

    Raises:
        UserError: an unknown method, option or domain, or a study that cannot be attacked.
    """
    kind, _ = ForgetRequest.split(study.forget)
    if kind != "domain":
        raise UserError(
            f"'{study.forget}' forgets single clients, whose samples other clients may hold in "
            "another shadow",
            "Attack a whole domain: --forget domain:NAME.",
        )
    if study.config.backdoor.clients:
        raise UserError(
            "Samples with a trigger are copies, which cannot be told from one shadow to the next",
            "Leave backdoor.clients empty.",
        )
    if study.shadows < 4:
        raise UserError(
            f"{study.shadows} shadows are too few to tell distributions apart", "Use 4 or more."
        )
    check_methods(study.methods, study.options)
    return ForgetRequest.parse(study.forget, clients_of(_config(study, 0), observer))


def _config(study: ShadowStudy, number: int) -> Config:
    """How this shadow learns: with a seed and samples of its own."""
    clients = study.config.clients.model_copy(update={"redeal": SHARE})
    return study.config.model_copy(update={"seed": study.config.seed + number, "clients": clients})


def _shadow(
    study: ShadowStudy, methods: Sequence[str], number: int, out: Path, observer: Observer
) -> dict[str, Tensors]:
    """One shadow's answers to all samples of the forgotten domains, by method."""
    config, path = _config(study, number), out / f"shadow-{number:02d}"
    run = learn(config, path, resume=(path / "run.json").is_file(), observer=observer)
    answers = {}
    with opened(config, observer, run.path / "features") as setting:
        for name in methods:
            texts = study.options.get(name, ())
            result = unlearn(run.path, study.forget, name, texts, observer, setting=setting)
            file = run.evaluation / f"margins-{label_of(name, study.forget)}.safetensors"
            if file.is_file():
                tensors, facts = load_tensors(file)
                if facts["identity"] == result["identity"]:
                    answers[name] = tensors
                    continue
            answers[name] = _answers(run, study.forget, name, setting)
            save_tensors(file, answers[name], {"identity": result["identity"]})
    return answers


def _answers(run: RunFolder, forget: str, method: str, setting: Setting) -> Tensors:
    """Of every sample of the forget clients: its place in the domains, margin and split."""
    model, _ = run.load_model(label_of(method, forget))
    request = ForgetRequest.parse(forget, setting.federation.clients)
    domains = sorted({client.domain for client in request.forget})
    names = {client.id: client.domain for client in request.forget}
    found: dict[str, list[torch.Tensor]] = {"place": [], "margins": [], "split": []}
    for reply in setting.federation.ask(
        "outputs",
        request.forget,
        deployed_state(model),
        {"splits": list(_SPLITS), "rows": True},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        # Places in several domains are kept apart by the domain's number.
        offset = domains.index(names[reply.client])
        for number, split in enumerate(_SPLITS):
            logits = reply.tensors[split].double().numpy()
            if len(logits):
                rows = reply.tensors[f"{split}_rows"]
                found["place"].append(rows * len(domains) + offset)
                found["margins"].append(torch.from_numpy(STATISTICS["margin"](logits)))
                found["split"].append(torch.full((len(logits),), number))
    return {name: torch.cat(parts) for name, parts in found.items()}


def _dense(answers: Tensors, name: str) -> Any:
    """The values in the order of the samples' places: every shadow has the same samples."""
    return answers[name][answers["place"].argsort()].numpy()
