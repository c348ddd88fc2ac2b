"""The rows of the paper's tables, and ours beside them."""

from foul.experiments.reproduce.plan import Asked, Trial, Variant
from foul.experiments.reproduce.sizes import Size, config_for, options_for
from foul.experiments.reproduce.sources import Source

STAGE_ONE = ("matching=false",)
"""Decision 13: after L2U, FedAvg of the scope over the retain clients."""

_ROWS = (
    Variant("learned", "none"),
    Variant("Retrain", "retrain", printed="Retrain"),
    Variant("Retrain, matched", "retrain-matched", printed="Retrain"),
    Variant("Continue", "continue"),
    Variant("FATS", "fats", printed="FATS"),
    Variant("NoT", "not", printed="NoT"),
    Variant("FedCDP", "fedcdp", printed="FedCDP"),
    Variant("FedRecovery", "fedrecovery", printed="FedRecovery"),
    Variant("FedOSD", "fedosd", printed="FedOSD"),
    Variant("FFMU", "ffmu", printed="FFMU"),
    Variant("FFMU, adapted", "ffmu-adapted"),
    Variant("FUSED", "fused", printed="FUSED"),
    Variant("FUSED, low rank", "fused-lora", printed="FUSED"),
    Variant("MoDE", "mode", printed="MoDE"),
    Variant("FOUL (1)+(2)", "foul", printed="FOUL (1)+(2)"),
    Variant("paper's (1)+(2)", "foul-paper", printed="FOUL (1)+(2)"),
    Variant("as printed", "foul-printed", printed="FOUL (1)+(2)"),
    Variant("FOUL (1)", "foul", STAGE_ONE, printed="FOUL (1)"),
    Variant("paper's (1)", "foul-paper", STAGE_ONE, printed="FOUL (1)"),
)


def variants(size: Size, labels: tuple[str, ...] = ()) -> tuple[Variant, ...]:
    """The rows of these labels (default: all), with the options of the size."""
    return tuple(sized(row, size) for row in _ROWS if not labels or row.label in labels)


def sized(variant: Variant, size: Size) -> Variant:
    """The variant with the options of the size before its own, which win."""
    options = (*options_for(variant.method, size), *variant.options)
    return Variant(variant.label, variant.method, options, variant.printed, variant.at)


def domain_trial(asked: Asked, source: Source, rows: tuple[Variant, ...]) -> Trial:
    """One data set: learn, and forget what was asked by each of the rows."""
    config = config_for(source, asked.size, asked.overrides)
    return Trial(source.title, source, config, source.requests(asked.forget), rows)


def domain_trials(asked: Asked, labels: tuple[str, ...] = ()) -> list[Trial]:
    """A trial for each data set, with the rows of these labels."""
    return [domain_trial(asked, source, variants(asked.size, labels)) for source in asked.sources]
