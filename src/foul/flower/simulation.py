"""The engine on Flower's simulation: clients are virtual nodes of this machine, run by Ray.

The simulation runs in a thread. Its ServerApp does nothing but lend its grid to the engine, so a
method runs where it always does: in the command's own process, with its run folder and progress.
"""

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from foul.config.schema import Config
from foul.errors import MachineError
from foul.flower.engine import FlowerEngine, network_make
from foul.flower.post import Post
from foul.flower.virtual import virtual_app

POLL = 0.02
"""Seconds between two looks for a reply: there is no network in between."""
START = 600.0
"""Seconds until every client must have answered: Ray starts, and its processes load the data."""
STOP = 30.0
"""Seconds that the simulation has to end."""


class SimulationEngine(FlowerEngine):
    """The Flower engine on the nodes of a simulation, which ends with it."""

    def __init__(
        self, config: Config, clients: Sequence[str], features: Path | None, processes: int
    ) -> None:
        """Start the simulation and ask its nodes who they are.

        Args:
            clients: their ids, in order.
            features: the folder where clients keep the outputs of frozen parts.
            processes: how many clients train side by side.

        Raises:
            MachineError: the simulation does not start.
        """
        self._simulation = Simulation(virtual_app(config, features), len(clients), processes)
        # Clients wait for each other's processes, so a round has as long as all of them together.
        flower = config.flower.model_copy(
            update={
                "clients": tuple(clients),
                "trust_names": True,
                "wait": START,
                "deadline": config.flower.deadline * len(clients),
            }
        )
        grid, sleep = self._simulation.grid, self._simulation.sleep
        make, largest = network_make(config.model), flower.largest_reply
        post = Post(grid, make, largest, sleep=sleep, asking=START)
        try:
            super().__init__(grid, flower, config.model, post=post)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the simulation and its processes."""
        self._simulation.close()


class Simulation:
    """Flower's simulation in a thread of this process."""

    def __init__(self, app: ClientApp, nodes: int, processes: int) -> None:
        """
        Raises:
            MachineError: it does not start.
        """
        self._grids: Queue[Grid] = Queue()
        self._over = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(
            target=self._run, args=(app, nodes, processes), name="simulation", daemon=True
        )
        self._thread.start()
        self.grid = self._lent_grid()

    def sleep(self, seconds: float) -> None:
        """Wait for a reply.

        Raises:
            MachineError: the simulation has ended, so none will come.
        """
        if not self._thread.is_alive():
            raise MachineError(
                f"Flower's simulation ended ({self._failure or 'nobody says why'})",
                "Ray's own logs are in its session folder, /tmp/ray/session_latest/logs.",
            )
        time.sleep(min(seconds, POLL))

    def close(self) -> None:
        self._over.set()
        self._thread.join(STOP)

    def _lent_grid(self) -> Grid:
        while True:
            try:
                return self._grids.get(timeout=POLL)
            except Empty:
                self.sleep(0)

    def _run(self, app: ClientApp, nodes: int, processes: int) -> None:
        # It announces every start, and that `flwr run` is preferred; that would leave a SuperLink
        # behind, on a port without a login.
        logging.getLogger("flwr").setLevel(logging.ERROR)
        server = ServerApp()

        @server.main()
        def lend(grid: Grid, context: Context) -> None:
            self._grids.put(grid)
            self._over.wait()

        backend: dict[str, dict[str, Any]] = {
            "init_args": {
                "num_cpus": processes,
                "num_gpus": 0,
                # Only this machine can reach Ray.
                "_node_ip_address": "127.0.0.1",
                "include_dashboard": False,
                "log_to_driver": False,
                "logging_level": "ERROR",
            },
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        }
        try:
            run_simulation(server, app, nodes, backend_config=backend)
        except BaseException as error:
            self._failure = str(error.__cause__ or error)
        finally:
            # The ServerApp's thread must not wait for a simulation that failed.
            self._over.set()
