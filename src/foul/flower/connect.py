"""From a configuration to the engine of the Flower run that this process serves."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from foul.config.schema import Config
from foul.errors import UserError
from foul.federation.messages import ClientInfo

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from foul.flower.engine import FlowerEngine

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
