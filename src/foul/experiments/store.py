"""Results of many runs in one file, keyed by a hash of what made them: a sweep that was stopped
goes on, and the figures can be committed without the runs."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.errors import UserError
from foul.runs.atomic import write_text
from foul.runs.results import read_json
from foul.unlearning.methods import METHODS, make_method

_ELSEWHERE = ("device", "workers", "threads", "tensorboard", "engine", "flower")
"""Settings of the machine: they change how fast a result comes, not what it is."""
_NEUTRAL = (
    *(("again", 0), ("learned_share", 0.0), ("fairness", 0.0), ("indistinct", False)),
    *(("unfit_rate", None), ("unfit_momentum", 0.0), ("unfit_kappa", None)),
    *(("sure", 0.0), ("sure_epochs", None), ("level", 0.0), ("sure_level", 0.0)),
    *(("probe_together", 0), ("still", "nothing")),
    *(("depth", 1.0), ("overfit", 1.0), ("overfit_level", 0.0)),
    *(("pool", False), ("curve", 0.0), ("unfit_forget", "bounded")),
    *(("aside", 0.0), ("aside_kappa", 2.0), ("calibrate", False), ("handicap", None)),
)
"""Options that came later: at these values they decide nothing."""
_BULK = ("records", "identity", "model")
"""What belongs to the run folder, not to a table."""


def result_key(config: Config, forget: str, method: str, options: dict[str, Any]) -> str:
    """A hash of everything that decides a result, wherever the data and the cache may be."""
    settings = config.model_dump(mode="json", exclude=set(_ELSEWHERE))
    for place in ("path", "cache"):
        settings["data"].pop(place)
    if not config.backdoor.clients:
        # Off, it decides nothing; and results keep the keys they had before there was one.
        settings.pop("backdoor")
    # What is kept beside learning does not change the model, and FedRecovery says if it is missing.
    settings["federation"].pop("history")
    if config.clients.redeal is None:
        settings["clients"].pop("redeal")
    options = {key: value for key, value in options.items() if (key, value) not in _NEUTRAL}
    entry = METHODS.get(method)
    # Version 1 is left out: results keep the keys they had before there were versions.
    version = [entry.method.version] if entry and entry.method.version > 1 else []
    text = json.dumps([settings, forget, method, options, *version], sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def key_of_request(config: Config, forget: str, method: str, texts: Iterable[str] = ()) -> str:
    """The key of what a method makes of a request, its options as `key=value`."""
    options = make_method(method, texts).options.model_dump(mode="json")
    return result_key(config, forget, method, options)


def slim(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what belongs to its run folder."""
    return {name: value for name, value in result.items() if name not in _BULK}


class ResultStore:
    """A JSON file of results by key, written after each of them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.results: dict[str, dict[str, Any]] = read_json(file) if file.is_file() else {}
        if not isinstance(self.results, dict):
            raise UserError(f"{file} does not hold results by key", "Choose another --store.")

    def get(self, key: str) -> dict[str, Any] | None:
        return self.results.get(key)

    def put(self, key: str, result: dict[str, Any]) -> dict[str, Any]:
        """Keep a result without its bulk; answers what is kept."""
        kept = slim(result)
        self.results[key] = kept
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.file, json.dumps(self.results, indent=1) + "\n")
        return kept
