"""`fig-capacity`: accuracy and reconstruction over the number of invariant channels."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from foul.config.schema import Config
from foul.experiments.reproduce.charts import Series, SweepPanel, sweep
from foul.experiments.reproduce.paper import BEST_INVARIANT_CHANNELS
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial, Variant
from foul.experiments.reproduce.sizes import Size, config_for
from foul.experiments.reproduce.sources import Source
from foul.federation.build import opened
from foul.federation.federation import EVALUATION, RoundLog
from foul.federation.observer import Observer
from foul.report.aggregate import Stat, stat
from foul.report.charts.style import COLOURS, Look
from foul.report.metrics import Unit
from foul.report.tables import Cell, Column, Line, Table, cell
from foul.runs.folder import RunFolder

CHANNELS = 32
"""C_IB: channels of K and V together."""
INVARIANT = (4, 8, 12, 16, 20, 24, 28)
ROUNDS = {"cpu": 15}
"""Rounds of a sweep over learning: half of what a single model gets."""
OWN = ("model.k_channels", "model.v_channels")
SAMPLES = 64
"""Test images of each client that are reconstructed."""


def channel_trial(
    asked: Asked,
    source: Source,
    k: int,
    forget: tuple[str, ...] = (),
    variants: tuple[Variant, ...] = (),
) -> Trial:
    """A network with `k` channels in K and the rest in V."""
    values: dict[str, Any] = dict(zip(OWN, (k, CHANNELS - k), strict=True))
    config = config_for(source, asked.size, sweep_rounds(asked.size) | values | asked.overrides)
    measures = {} if variants else {"reconstruction": reconstruction}
    return Trial(
        f"{source.title}, K {k} of {CHANNELS}",
        source,
        config,
        forget,
        variants,
        {"k": float(k)},
        measures,
    )


def sweep_rounds(size: Size) -> dict[str, Any]:
    """Fewer rounds where many models are learned."""
    return {"learning.rounds": ROUNDS[size]} if size in ROUNDS else {}


def trials(asked: Asked) -> list[Trial]:
    """A learned model for each number of invariant channels."""
    numbers = INVARIANT[1:4:2] if asked.size == "smoke" else INVARIANT
    return [channel_trial(asked, source, k) for source in asked.sources for k in numbers]


def reconstruction(config: Config, run: RunFolder, observer: Observer) -> dict[str, Any]:
    """Mean squared error per pixel (of 1) and PSNR of test images: from both codes, from z_K and
    from z_V alone."""
    learned, _ = run.load_model()
    squares: dict[str, float] = {}
    pixels = 0
    with opened(config, observer) as setting:
        federation = setting.federation
        for reply in federation.ask(
            "reconstruct",
            federation.clients,
            learned,
            {"samples": SAMPLES},
            round=0,
            stage=EVALUATION,
            log=RoundLog(),
        ):
            original = reply.tensors["original"].double() / 255
            pixels += original.numel()
            for name in ("both", "k_only", "v_only"):
                error = reply.tensors[name].double() / 255 - original
                squares[name] = squares.get(name, 0.0) + float(error.square().sum())
    errors = {f"mse_{name}": total / pixels for name, total in squares.items()}
    return errors | {"psnr": psnr(errors["mse_both"])}


def psnr(mse: float) -> float:
    r"""Peak signal-to-noise ratio :math:`-10 \log_{10} MSE` in dB, of images in [0, 1]."""
    return -10 * math.log10(max(mse, 1e-12))


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """A picture and a table per data set."""
    tables, figures, sentences = [], {}, []
    for source in dict.fromkeys(d.trial.source for d in done):
        own = [d for d in done if d.trial.source == source]
        figures[source.key] = picture(own, source.title)
        tables.append(Shown(f"{source.title}: invariant channels of {CHANNELS}.", table(own)))
        sentences.append(best_channels(own))
    return Outcome(
        tables,
        figures,
        [
            *sentences,
            "The paper shows curves without numbers, on VLCS: accuracy best from 16 invariant "
            "channels on, reconstruction unchanged. Accuracy here is on test data, of the joint "
            "head and of z_K alone; reconstruction is the MSE on test images.",
            "The paper calls (3x32x32):(8x64) = 6:1 a compression; its latents of 8x8 need images "
            "of 32 px, which is not the size it trains at.",
        ],
    )


def values(done: Sequence[Done], path: str) -> dict[float, Stat]:
    """A figure of the learned models over K's channels: accuracies in %, else as measured."""
    found: dict[float, Stat] = {}
    for k in sorted({d.trial.at["k"] for d in done}):
        own = [d.learned for d in done if d.trial.at["k"] == k]
        if path in ("accuracy", "causal_accuracy"):
            told = stat(
                None if (x := learned["accuracy"]["test"]["all"][path]) is None else 100 * x
                for learned in own
            )
        else:
            told = stat(learned["reconstruction"][path] for learned in own)
        if told is not None:
            found[k] = told
    return found


def best_channels(done: Sequence[Done]) -> str:
    """Where accuracy is highest, and whether the paper's threshold shows."""
    joint = values(done, "accuracy")
    best = max(joint, key=lambda k: joint[k].mean)
    large = [s.mean for k, s in joint.items() if k >= BEST_INVARIANT_CHANNELS]
    small = [s.mean for k, s in joint.items() if k < BEST_INVARIANT_CHANNELS]
    told = (
        f"{done[0].trial.source.title}: test accuracy is highest with {best:g} invariant channels"
    )
    if not large or not small:
        return f"{told}."
    return (
        f"{told}; from {BEST_INVARIANT_CHANNELS} on the mean is "
        f"{sum(large) / len(large):.1f} %, below it {sum(small) / len(small):.1f} %."
    )


def picture(done: Sequence[Done], title: str) -> Figure:
    """Accuracy on the left, error of reconstruction on the right."""
    xlabel = f"invariant channels (K), of {CHANNELS}"
    accuracy = SweepPanel(
        xlabel,
        "test accuracy (%)",
        [
            Series("joint head [z_K, z_V]", Look(COLOURS[0], "o"), values(done, "accuracy")),
            Series("z_K alone", Look(COLOURS[1], "s"), values(done, "causal_accuracy")),
        ],
        {},
    )
    names = {"mse_both": "from both codes", "mse_k_only": "from z_K", "mse_v_only": "from z_V"}
    errors = SweepPanel(
        xlabel,
        "MSE of reconstruction",
        [
            Series(name, Look(COLOURS[2 + n], "o^v"[n]), values(done, key))
            for n, (key, name) in enumerate(names.items())
        ],
        {},
        # From zero: errors that differ in the third digit shall look alike.
        limits=(0.0, None),
    )
    return sweep([accuracy, errors], title)


def table(done: Sequence[Done]) -> Table:
    """Every number of channels."""
    heads = ("K + V", "TA %", "TA of z_K %", "MSE", "PSNR dB", "MSE from z_K", "MSE from z_V")
    units = {
        "accuracy": Unit(),
        "causal_accuracy": Unit(),
        "mse_both": Unit(digits=4),
        "psnr": Unit(digits=2),
        "mse_k_only": Unit(digits=4),
        "mse_v_only": Unit(digits=4),
    }
    columns = {path: values(done, path) for path in units}
    lines = [
        Line(
            [
                Cell(f"{k:g} + {CHANNELS - k:g}"),
                *(cell(columns[path].get(k), unit) for path, unit in units.items()),
            ]
        )
        for k in sorted({d.trial.at["k"] for d in done})
    ]
    return Table([Column(head) for head in heads], lines)


EXPERIMENT = Experiment(
    name="fig-capacity",
    what="accuracy and reconstruction over 4 to 28 invariant channels of 32",
    where="Appendix, Assessment of Knowledge Extraction Capability",
    sets=("vlcs",),
    trials=trials,
    tell=tell,
    minutes=30,
    budget="PACS64: 7 models of 15 rounds at 17 s, 10 s of reconstruction each: about 30 minutes.",
    own=OWN,
    forgets=False,
)
