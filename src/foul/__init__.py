"""Federated learning that can forget.

import foul

run = foul.learn(foul.load_config("digits"), "runs/first")
print(run.summary()["accuracy"]["test"]["all"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foul.errors import FoulError, MachineError, UserError
from foul.version import __version__

if TYPE_CHECKING:
    from foul.config import Config, load_config
    from foul.data import build_clients, load_dataset
    from foul.exporting import export, load_deployed
    from foul.federation.observer import Observer
    from foul.learning.stage import learn
    from foul.models import build_network, summarise
    from foul.runs.folder import RunFolder

__all__ = [
    "Config",
    "FoulError",
    "MachineError",
    "Observer",
    "RunFolder",
    "UserError",
    "__version__",
    "build_clients",
    "build_network",
    "export",
    "learn",
    "load_config",
    "load_dataset",
    "load_deployed",
    "summarise",
]

# Loaded when they are first used: torch takes seconds, and a Flower node that only passes messages
# on has no need of it.
_HOME = {
    "Config": "foul.config",
    "Observer": "foul.federation.observer",
    "RunFolder": "foul.runs.folder",
    "build_clients": "foul.data",
    "build_network": "foul.models",
    "export": "foul.exporting",
    "learn": "foul.learning.stage",
    "load_config": "foul.config",
    "load_dataset": "foul.data",
    "load_deployed": "foul.exporting",
    "summarise": "foul.models",
}


if not TYPE_CHECKING:  # or type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'foul' has no attribute '{name}'")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
