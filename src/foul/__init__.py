"""Federated learning that can forget.

import foul

run = foul.learn(foul.load_config("digits"), "runs/first")
print(run.summary()["accuracy"]["test"]["all"])
"""

from foul.config import Config, load_config
from foul.data import build_clients, load_dataset
from foul.errors import FoulError, MachineError, UserError
from foul.export import export, load_deployed
from foul.federation.observer import Observer
from foul.learning.stage import learn
from foul.models import build_network, summarise
from foul.runs.folder import RunFolder
from foul.version import __version__

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
