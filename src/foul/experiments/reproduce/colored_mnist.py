"""`table-colored-mnist`: accuracy from z_K alone in other environments, and its invariance."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from foul.config.schema import Config
from foul.data.colored_mnist import ENVIRONMENTS
from foul.evaluation.accuracy import evaluate
from foul.experiments.reproduce.paper import COLORED_MNIST
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial
from foul.experiments.reproduce.rows import signed
from foul.experiments.reproduce.sizes import config_for
from foul.federation.build import Setting, opened
from foul.federation.federation import EVALUATION, RoundLog
from foul.federation.messages import ClientInfo, Tensors
from foul.federation.observer import Observer
from foul.models import deployed_state
from foul.report.aggregate import Stat, stat
from foul.report.metrics import Unit
from foul.report.tables import Cell, Column, Line, Table, cell
from foul.runs.folder import RunFolder

NOISES = (0.25, 0.0)
"""DomainBed's label noise, and none."""
PAPER_ROUNDS = 100


def trials(asked: Asked) -> list[Trial]:
    """A model for each training environment, with and without label noise."""
    [source] = asked.sources
    found = []
    for noise in NOISES:
        for number, domain in enumerate(ENVIRONMENTS):
            changes: dict[str, Any] = {"data.domains": [domain], "data.label_noise": noise}
            if asked.size == "paper":
                changes["learning.rounds"] = PAPER_ROUNDS
                changes["data.image_size"] = 28
            if asked.size == "smoke":
                changes["data.max_per_domain"] = 120
            config = config_for(source, asked.size, changes | asked.overrides)
            found.append(
                Trial(
                    f"trained on {domain}, {100 * noise:g} % label noise",
                    source,
                    config,
                    at={"noise": noise, "domain": float(number)},
                    measures={"environments": partial(environments, domain)},
                )
            )
    return found


def environments(
    trained: str, config: Config, run: RunFolder, observer: Observer
) -> dict[str, Any]:
    """Test accuracy of z_K alone in every environment, and how far z_K is there from where it was
    on the training data."""
    everywhere = config.model_copy(
        update={"data": config.data.model_copy(update={"domains": tuple(ENVIRONMENTS)})}
    )
    learned, _ = run.load_model()
    with opened(everywhere, observer) as setting:
        scores = evaluate(setting.federation, learned, splits=("test",)).by_domain("test")
        home = code_moments(setting, learned, trained, "train")
        told: dict[str, Any] = {}
        for domain in ENVIRONMENTS:
            there = code_moments(setting, learned, domain, "test")
            distance, relative = invariance(home, there)
            told[domain] = {
                "accuracy": scores[domain].to_dict()["causal_accuracy"],
                "joint_accuracy": scores[domain].to_dict()["accuracy"],
                "distance": distance,
                "relative": relative,
            }
    return told


Moments = tuple[torch.Tensor, torch.Tensor]
"""Class means `[C, D]` of z_K, and the mean variance of its dimensions."""


def code_moments(setting: Setting, learned: Tensors, domain: str, split: str) -> Moments:
    """Moments of z_K over the clients of a domain: sums, no code leaves its client."""
    clients: Sequence[ClientInfo] = [
        client for client in setting.federation.clients if client.domain == domain
    ]
    gram = cross = torch.zeros(())
    for reply in setting.federation.ask(
        "moments",
        clients,
        deployed_state(learned),
        {"part": "K", "split": split},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        gram, cross = gram + reply.tensors["gram"], cross + reply.tensors["cross"]
    # The last code is the constant 1: its row holds the counts.
    counts, total = cross[-1], gram[-1, -1]
    means = (cross[:-1] / counts.clamp(min=1)).T
    mean = gram[:-1, -1] / total
    return means, (gram.diagonal()[:-1] / total - mean.square()).mean()


def invariance(home: Moments, there: Moments) -> tuple[float, float]:
    r"""Disparity of z_K: :math:`\frac1{CD} \sum_c \|\mu_c^i - \mu_c^j\|^2` between the class means
    of two environments, and the same in units of the mean variance at home."""
    distance = float((home[0] - there[0]).square().mean())
    return distance, distance / max(float(home[1]), 1e-12)


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A table for each level of noise, the paper's beside both."""
    tables, sentences = [], []
    for noise in NOISES:
        own = [d for d in done if d.trial.at["noise"] == noise]
        told = f"{100 * noise:g} % label noise" if noise else "without label noise"
        tables.append(
            Shown(
                f"Colored-MNIST, {told}: test accuracy of z_K alone in %, and in parentheses ours "
                "minus the paper's; disparity of z_K, and in parentheses in units of its variance.",
                table(own),
            )
        )
        sentences += above_ceiling(own, noise)
    return Outcome(
        tables,
        {},
        [
            *sentences,
            "With 25 % of the labels flipped, no predictor that ignores colour can exceed 75 % in "
            "any environment: the printed 89.5, 82.3 and 80.7 % cannot come from invariant "
            "features under DomainBed's noise (decision 22).",
            "The paper prints the same figures for models trained on different domains (73.2 % and "
            "0.0002 three times).",
            "With 25 % of the labels flipped colour is the better clue in +90%, one domain alone "
            "offers nothing to tell it from shape with, and nothing in L_K or L_gtc forbids K to "
            "use it. Without noise shape is always right, and K follows both.",
            "The paper does not define its distance; ours compares class means of z_K on test data "
            "with those on the training data, so that the own domain's is not 0 either.",
        ],
    )


def values(done: Sequence[Done], trained: str, domain: str, key: str) -> Stat | None:
    """A figure over the seeds."""
    number = float(list(ENVIRONMENTS).index(trained))
    own = [d for d in done if d.trial.at["domain"] == number]
    return stat(d.learned["environments"][domain][key] for d in own)


def above_ceiling(done: Sequence[Done], noise: float) -> list[str]:
    """The largest and smallest accuracy outside of the training domain."""
    told = []
    for trained in ENVIRONMENTS:
        found = {
            domain: s.mean
            for domain in ENVIRONMENTS
            if (s := values(done, trained, domain, "accuracy")) is not None
        }
        text = ", ".join(f"{100 * x:.1f} % on {domain}" for domain, x in found.items())
        told.append(f"Trained on {trained} with {100 * noise:g} % noise: {text}.")
    return told


def table(done: Sequence[Done]) -> Table:
    """A pair of lines for each training domain."""
    heads = ["trained on", "figure"]
    for domain in ENVIRONMENTS:
        heads += [domain, "paper"]
    lines = []
    for trained in ENVIRONMENTS:
        accuracy, disparity = [Cell(trained), Cell("accuracy %")], [Cell(""), Cell("disparity")]
        for domain in ENVIRONMENTS:
            printed, distance = COLORED_MNIST[trained][domain]
            found = values(done, trained, domain, "accuracy")
            gap = "" if found is None else signed(100 * found.mean - printed)
            accuracy += [cell(found, Unit(100.0), gap), Cell(f"{printed:.1f}")]
            relative = values(done, trained, domain, "relative")
            disparity += [
                cell(
                    values(done, trained, domain, "distance"),
                    Unit(digits=4),
                    "" if relative is None else f"{relative.mean:.3f}",
                ),
                Cell(f"{distance:.4f}"),
            ]
        lines += [Line(accuracy, first=True), Line(disparity)]
    return Table([Column(head) for head in heads], lines)


EXPERIMENT = Experiment(
    name="table-colored-mnist",
    what="accuracy from z_K alone across the three environments, and its invariance",
    where="Appendix, Assessing the domain generalization capabilities",
    sets=("colored-mnist",),
    trials=trials,
    tell=tell,
    minutes=2,
    budget="Embedded digits: 6 models of 12 rounds over 1,200 images, a third of the demo's 42 s "
    "each: about 2 minutes.",
    embedded=True,
    own=("data.domains", "data.label_noise"),
    forgets=False,
)
