"""Results that nobody ran: for whatever is told of results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from small_runs import small_config

from foul.experiments.reproduce.plan import Done, Trial, Variant
from foul.experiments.reproduce.sources import Source
from foul.experiments.study import compared

PACS = Source("pacs", Path("PACS.zip"), ("art_painting", "cartoon", "photo", "sketch"))
REQUEST = "domain:sketch"

Figures = Mapping[str, float]


def result(variant: Variant, seed: int = 0, **figures: Any) -> dict[str, Any]:
    """A result with these figures, usual ones for the rest."""
    usual: dict[str, Any] = {
        "fa": 0.5,
        "ra": 0.8,
        "ta": 0.6,
        "mia_accuracy": 0.5,
        "rounds": 4,
        "bytes": 4_000_000,
        "flops": 2_000_000_000,
        "curve": [],
        "options": {},
    }
    told = {"label": variant.label, "method": variant.method, "forget": REQUEST, "seed": seed}
    return usual | told | {"at": dict(variant.at)} | figures


def trial(variants: Sequence[Variant], source: Source = PACS, **values: Any) -> Trial:
    usual: dict[str, Any] = {"forget": (REQUEST,), "variants": tuple(variants)}
    return Trial(source.title, source, small_config(), **(usual | values))


def done(of: Trial, figures: Mapping[str, Mapping[str, Any]], seed: int = 0) -> Done:
    """What the trial gave: the figures of its variants by label; the others failed."""
    results = [result(v, seed, **figures[v.label]) for v in of.variants if v.label in figures]
    return Done(of, seed, Path("run"), {"rounds": [], "accuracy": {}}, compared(results))


def texts(table: Any) -> list[list[str]]:
    """The cells' texts, line by line."""
    return [[cell.text for cell in line.cells] for line in table.lines]
