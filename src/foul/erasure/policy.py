"""What the operator accepts: thresholds, methods, what a purge leaves, the clock."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from foul.config.schema import Section
from foul.errors import UserError

FILE = "policy.toml"


class Accept(Section):
    """What the evidence must show, or the old model stays in service."""

    mia_auc_high: float = Field(default=0.7, ge=0.5, le=1)
    """Largest accepted upper end of the 95 % interval of the loss attack's AUC (0.5 is chance).
    Few samples make wide intervals: a client with 30 of them needs 0.8."""
    mia_auc_low: float = Field(default=0.3, ge=0, le=0.5)
    """Smallest accepted lower end: answers much worse than chance tell of members, too."""
    forget_gap: float = Field(default=0.15, ge=0, le=1)
    """Largest accepted accuracy on the forgotten training data above that on the forgotten clients'
    test data: what was forgotten is known no better than what was never seen."""
    retain_loss: float = Field(default=0.05, ge=0, le=1)
    """Largest accepted loss of accuracy on the retained clients' training data (0.05: 5 points)."""
    retain_test_loss: float = Field(default=0.05, ge=0, le=1)
    """The same on their test data."""
    missing: Literal["exact", "accept", "refuse"] = "exact"
    """Figures that cannot be measured (the client is out of reach, or has no test samples) are
    accepted of exact methods only (retrain, fats), of all, or of none."""


class Purge(Section):
    """What goes after an erasure. Stored updates, caches and results always go."""

    checkpoints: Literal["delete", "keep"] = "delete"
    """Checkpoints of the learning stage: they contain the client."""
    old_model: Literal["delete", "keep"] = "delete"
    """The model that was replaced: it contains the client. Kept, it is moved to erasure/kept/, and
    the receipt says so."""
    history: Literal["drop", "others"] = "drop"
    """Sums of contributions (federation.history): all go, or the other groups' stay, which were
    formed beside the client's."""


class Methods(Section):
    """How requests are served."""

    prefer: tuple[str, ...] = Field(default=("foul", "not", "retrain"), min_length=1)
    """Methods in order of preference: the first that can serve a request is recommended."""


class Clock(Section):
    """How long a request may take."""

    months: int = Field(default=1, ge=1, le=12)
    """Months from the request to its due date (GDPR, Article 12(3): one month)."""


class Policy(Section):
    """Everything that can be decided about erasures."""

    accept: Accept = Accept()
    purge: Purge = Purge()
    methods: Methods = Methods()
    clock: Clock = Clock()


def load_policy(store: Path) -> Policy:
    """The policy of a store, or the default.

    Raises:
        UserError: the file is not valid; names the key.
    """
    file = store / FILE
    if not file.is_file():
        return Policy()
    try:
        return Policy.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not valid TOML ({error})", _REMEDY) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{file}: {key}: {first['msg']}", _REMEDY) from error


_REMEDY = "`foul erase policy` prints one that works, with comments."


def policy_text(policy: Policy) -> str:
    """The policy as TOML, each key explained."""
    lines = ["# What is accepted of an erasure. A run that misses it fails: the old model stays."]
    for name in Policy.model_fields:
        section = getattr(policy, name)
        lines += ["", f"# {section.__doc__}", f"[{name}]"]
        for key, field in type(section).model_fields.items():
            words = " ".join((field.description or "").split())
            lines += [f"# {words}", f"{key} = {_toml(getattr(section, key))}"]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
