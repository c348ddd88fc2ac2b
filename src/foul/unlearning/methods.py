"""The table of methods: names at the edge, classes inside."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foul.config.load import parse_override, validate_options
from foul.config.schema import Section
from foul.errors import UserError
from foul.names import hint
from foul.unlearning.controls import (
    Continue,
    ContinueOptions,
    DoNothing,
    NoneOptions,
    Retrain,
    RetrainOptions,
)
from foul.unlearning.fats import Fats, FatsOptions
from foul.unlearning.fedcdp import FedCdp, FedCdpOptions
from foul.unlearning.fedosd import FedOsd, FedOsdOptions
from foul.unlearning.fedrecovery import FedRecovery, FedRecoveryOptions
from foul.unlearning.ffmu import Ffmu, FfmuAdapted, FfmuAdaptedOptions, QuantisedOptions
from foul.unlearning.foul import Foul, FoulOptions, paper_options
from foul.unlearning.fused import Fused, LowRankOptions, SparseOptions
from foul.unlearning.method import Method
from foul.unlearning.mode import MoDe, ModeOptions
from foul.unlearning.not_ import NoT, NotOptions


@dataclass(frozen=True)
class Entry:
    """A method and its default options, under a name of its own."""

    method: type[Method[Any]]
    options: Section
    note: str = ""
    """How it differs from the method, if it does."""
    compared: bool = True
    """Whether `foul compare --methods all` runs it."""

    @property
    def idea(self) -> str:
        """In a sentence: the note, or how the method's docstring begins."""
        return self.note or " ".join((self.method.__doc__ or "").split("\n\n")[0].split())


METHODS: dict[str, Entry] = {
    "none": Entry(DoNothing, NoneOptions()),
    "continue": Entry(Continue, ContinueOptions()),
    "retrain": Entry(Retrain, RetrainOptions()),
    "retrain-matched": Entry(
        Retrain,
        RetrainOptions(rounds=7),
        "Retrain with about as many rounds as FOUL takes: what the paper's tables call Retrain.",
    ),
    "retrain-again": Entry(
        Retrain,
        RetrainOptions(again=1),
        "Retrain from another start: how far two honest retrainings are from each other.",
        compared=False,
    ),
    "not": Entry(NoT, NotOptions()),
    "fedcdp": Entry(FedCdp, FedCdpOptions()),
    "fused": Entry(Fused, SparseOptions()),
    "fused-lora": Entry(
        Fused,
        LowRankOptions(),
        "FUSED with low-rank adapters, as in its authors' code and most likely their table.",
    ),
    "fedosd": Entry(FedOsd, FedOsdOptions()),
    "mode": Entry(MoDe, ModeOptions()),
    "fedrecovery": Entry(FedRecovery, FedRecoveryOptions()),
    "fats": Entry(Fats, FatsOptions()),
    "ffmu": Entry(Ffmu, QuantisedOptions()),
    "ffmu-adapted": Entry(FfmuAdapted, FfmuAdaptedOptions()),
    "foul": Entry(Foul, FoulOptions()),
    "foul-paper": Entry(
        Foul,
        paper_options(),
        "FOUL by the paper's recipe: V alone, negated deltas, the mean of all clients as anchor.",
    ),
    "foul-printed": Entry(
        Foul,
        paper_options(as_printed=True),
        "foul-paper with its theorem taken literally: one simplex, radius sqrt(kappa).",
        compared=False,
    ),
}


def make_method(name: str, overrides: Iterable[str] = ()) -> Method[Any]:
    """The method of this name, with some options changed (`kappa=2`).

    Raises:
        UserError: no such method or option, or an impossible value.
    """
    if name not in METHODS:
        raise UserError(f"There is no method '{name}'", hint(name, METHODS))
    entry = METHODS[name]
    values = entry.options.model_dump() | dict(parse_override(text) for text in overrides)
    return entry.method(validate_options(type(entry.options), values))
