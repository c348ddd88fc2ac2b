"""From a configuration to the engine of the Flower run that this process serves, or simulates."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from foul.config.schema import Config
from foul.errors import UserError
from foul.federation.messages import ClientInfo

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from foul.flower.engine import FlowerEngine
    from foul.flower.simulation import SimulationEngine

_SIMULATION = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}
"""Flower and Ray call nobody, and Ray's processes see the GPU and take their turns as ours do (else
they give way to everything on the machine). Both read this when they are loaded."""

_GRID: ContextVar["Grid | None"] = ContextVar("grid", default=None)
"""The grid of the ServerApp that runs here, if one does."""


@contextmanager
def serving(grid: "Grid") -> Iterator[None]:
    """Within, `engine=flower` means the nodes of this grid."""
    before = _GRID.set(grid)
    try:
        yield
    finally:
        _GRID.reset(before)


def is_serving() -> bool:
    """Whether this is the inside of a ServerApp."""
    return _GRID.get() is not None


def connect(config: Config, known: Sequence[ClientInfo] = ()) -> "FlowerEngine":
    """The engine on the nodes of the Flower run that this process serves.

    Raises:
        UserError: this is no ServerApp; or clients are missing.
    """
    grid = _GRID.get()
    if grid is None:
        raise UserError(
            "engine=flower works inside a Flower ServerApp",
            "Use the command (foul learn, unlearn, run, compare, evaluate, erase): it starts one.",
        )
    from foul.flower.engine import FlowerEngine

    return FlowerEngine(grid, config.flower, config.model, known)


def simulate(
    config: Config, clients: Sequence[str], features: Path | None, processes: int
) -> "SimulationEngine":
    """The engine on virtual nodes of this machine, one for each of these clients.

    Raises:
        UserError: Flower's simulation is not installed.
        MachineError: it does not start.
    """
    for package in ("flwr", "ray"):
        if find_spec(package) is None:
            raise UserError(
                f"engine=flower-sim needs Flower's simulation, and '{package}' is not installed",
                "Install it: pip install 'foul[simulation]'",
            )
    for name, value in _SIMULATION.items():
        os.environ.setdefault(name, value)
    from foul.flower.simulation import SimulationEngine

    return SimulationEngine(config, clients, features, processes)
