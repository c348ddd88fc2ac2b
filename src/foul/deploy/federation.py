"""Set a federation up, look at it, stop it."""

import importlib.util
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foul.config.load import config_to_toml
from foul.config.schema import Config
from foul.deploy.certificates import (
    make_authority,
    make_node_key,
    make_server_certificate,
    write_private,
)
from foul.deploy.control import Control, Node
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import (
    CONNECTION,
    LOCAL,
    Plan,
    driver_config,
    driver_environment,
    make_plan,
)
from foul.deploy.processes import gone, marked, seconds_since, send, stop
from foul.deploy.supervisor import Note, launch, read_notes
from foul.errors import MachineError, UserError
from foul.runs.atomic import write_text

PATIENCE = 180.0
"""Seconds until a federation must be up: a node is refused for a minute after it was killed."""
TRIES = 2
"""So often a process may end before it counts as broken; a SuperNode may until the deadline."""
LOG_TAIL = 15
"""Lines of a log in an error."""
SECRET_BYTES = 48

Tell = Callable[[str], None]


def prepare(
    folder: FederationFolder,
    config: Config,
    clients: Sequence[str],
    *,
    host: str = LOCAL,
    names: Sequence[str] = (),
    port: int = 0,
    environment: Mapping[str, str] | None = None,
) -> Plan:
    """Write certificates, keys, configuration and plan into a new folder.

    Args:
        clients: ids of the clients whose nodes run on this machine.
        host: where the proxy listens for nodes from elsewhere.
        names: host names and addresses by which nodes know this machine.
        port: of the proxy; SuperLink and nodes take the next ones. 0: any that are free.

    Raises:
        UserError: the folder is in use, or a port is.
    """
    require_flower()
    ports = free_ports(len(clients) + 2) if port == 0 else _reserved(port, len(clients) + 2, host)
    folder.create(clients)
    known_as = [*names, *([] if host in ("0.0.0.0", "::") else [host])]
    make_authority(folder.certificates)
    make_server_certificate(folder.certificates, known_as)
    write_private(folder.secret, secrets.token_bytes(SECRET_BYTES))
    for client in clients:
        make_node_key(folder.key(client), client)
        (folder.node(client) / "flwr").mkdir(mode=0o700)
    write_text(folder.config, config_to_toml(config))
    plan = make_plan(folder, clients, host, names, ports, environment or {})
    write_text(folder.home / "config.toml", driver_config(folder, plan))
    # Last: a folder with a plan is complete.
    plan.write(folder.plan)
    return plan


@dataclass(frozen=True)
class RunningFederation:
    """A federation whose supervisor runs, or should."""

    folder: FederationFolder
    plan: Plan

    @classmethod
    def open(cls, path: Path) -> "RunningFederation":
        """The federation in this folder.

        Raises:
            UserError: there is none.
        """
        folder = FederationFolder.open(path)
        return cls(folder, Plan.read(folder.plan))

    connection = CONNECTION
    """Its name for `flwr run APP NAME`."""

    @property
    def address(self) -> str:
        """Where drivers on this machine reach the SuperLink."""
        return self.plan.superlink

    @property
    def ports(self) -> dict[str, int]:
        return self.plan.ports

    @property
    def control(self) -> Control:
        return Control(self.address, self.folder.authority)

    def driver_env(self) -> dict[str, str]:
        """The environment in which `flwr` and `foul ... engine=flower` find it."""
        return driver_environment(self.folder)

    def notes(self) -> dict[str, Note]:
        """What the supervisor knows of each process."""
        return read_notes(self.folder.state)

    @property
    def supervised(self) -> bool:
        return self.notes().get("supervisor", Note()).alive

    def pid(self, name: str) -> int:
        """The number of this process, 0 if it does not run."""
        note = self.notes().get(name, Note())
        return note.pid if note.alive else 0

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to a process, which the supervisor will start again; its number."""
        pid = self.pid(name)
        if not pid:
            raise UserError(f"{name} does not run")
        os.kill(pid, number)
        return pid

    def hold(self, name: str) -> None:
        """From now on, the supervisor does not start this process."""
        (self.folder.held / name).touch()

    def release(self, name: str) -> None:
        """From now on, it does again."""
        (self.folder.held / name).unlink(missing_ok=True)

    def log(self, name: str) -> str:
        """What a process printed."""
        path = self.folder.log(name)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def online(self) -> dict[str, int]:
        """Clients whose nodes are online, with the nodes' numbers."""
        return {n.name: n.id for n in self.control.nodes() if n.status == "online"}

    def wait_online(self, clients: Sequence[str], timeout: float) -> None:
        """Wait until these clients' nodes, as they run now, are online.

        Raises:
            MachineError: they are not.
        """
        _wait(
            lambda: set(clients) <= self._arrived(),
            timeout,
            lambda: MachineError(f"Not online after {timeout:.0f} s: {', '.join(clients)}"),
        )

    def _arrived(self) -> set[str]:
        """Clients whose node has joined since it was started. For a minute after a node was
        killed, the SuperLink believes it to be online."""
        notes = self.notes()
        arrived = set()
        for node in self.control.nodes():
            note = notes.get(f"supernode-{node.name}", Note())
            if node.status == "online" and note.alive:
                since = time.time() - seconds_since(note.started)
                if node.joined > since - 1:
                    arrived.add(node.name)
        return arrived

    def start(self, tell: Tell = print, patience: float = PATIENCE) -> None:
        """Start what does not run, and wait until all nodes are online.

        Raises:
            MachineError: something does not start; its log's end is in the error. What was
                started by this call is stopped again.
        """
        deadline = time.monotonic() + patience
        launched = not self.supervised
        if launched:
            _require_free_ports(self)
            self._launch()
        try:
            self._bring_online(tell, deadline)
        except BaseException:
            if launched:
                self.stop()
            raise

    def _launch(self) -> None:
        if not launch(self.folder):
            raise self._died("supervisor", "does not start")
        _wait(lambda: self.supervised, 30, lambda: self._died("supervisor", "does not start"))

    def _bring_online(self, tell: Tell, deadline: float) -> None:
        tell("SuperLink: starting")
        self._await(self.control.healthy, deadline, "superlink")
        self._register(tell)
        wanted, shown = set(self.plan.clients), -1

        def all_online() -> bool:
            nonlocal shown
            count = len(wanted & self._arrived())
            if count != shown:
                tell(f"nodes online: {count} of {len(wanted)}")
                shown = count
            return count == len(wanted)

        self._await(all_online, deadline)

    def _register(self, tell: Tell) -> None:
        """Make the SuperLink know the keys of the nodes here, by their clients' names."""
        known = {node.name: node for node in self.control.nodes() if node.status != "unregistered"}
        for client in self.plan.clients:
            public = self.folder.key(client).with_suffix(".pub")
            node = known.get(client)
            number = node.id if node else self.control.register(public, client)
            write_text(self.folder.registration(client), json.dumps({"node_id": number}))
        tell(f"SuperLink: up, knows {len(self.plan.clients)} keys of nodes here")

    def _await(self, condition: Callable[[], bool], deadline: float, name: str = "") -> None:
        """Wait for a condition, while no process gives up.

        Raises:
            MachineError: one did, or the deadline passed.
        """
        while not condition():
            for found, note in self.notes().items():
                if note.restarts >= TRIES and not found.startswith("supernode-"):
                    raise self._died(found, f"ended {note.restarts} times")
            if time.monotonic() > deadline:
                late = name or self._first_offline()
                raise self._died(late, "is not ready in time")
            time.sleep(0.5)

    def _first_offline(self) -> str:
        arrived = self._arrived()
        return next(f"supernode-{c}" for c in self.plan.clients if c not in arrived)

    def _died(self, name: str, what: str) -> MachineError:
        lines = self.log(name).splitlines()[-LOG_TAIL:]
        tail = "\n".join(f"  {line}" for line in lines) or "  (empty)"
        return MachineError(f"{name} {what}. The end of {self.folder.log(name)}:\n{tail}\n")

    def stop(self, patience: float = 40.0) -> None:
        """Stop everything, politely first; also what a killed supervisor left behind."""
        supervisor = self.pid("supervisor")
        if supervisor:
            send(signal.SIGTERM, [supervisor])
            gone([supervisor], patience)
        stop(marked(str(self.folder.path)), 10)
        self.folder.state.unlink(missing_ok=True)

    def known_nodes(self) -> list[Node]:
        """What the SuperLink knows of nodes; nothing if it does not answer."""
        return self.control.nodes() if self.control.healthy() else []


def _wait(condition: Callable[[], bool], timeout: float, error: Callable[[], Exception]) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise error()
        time.sleep(0.1)


def require_flower() -> None:
    """
    Raises:
        UserError: Flower is not installed, or this is not Linux.
    """
    if sys.platform != "linux":
        raise UserError(
            "`foul federation` needs Linux", "Start the programs yourself: docs/deploy.md."
        )
    if importlib.util.find_spec("flwr") is None:
        raise UserError("Flower is not installed", "pip install 'foul[flower]'")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOCAL, 0))
        return [each.getsockname()[1] for each in sockets]


def _reserved(first: int, count: int, host: str) -> list[int]:
    ports = list(range(first, first + count))
    for position, port in enumerate(ports):
        _require_free(port, host if position == 0 else LOCAL)
    return ports


def _require_free_ports(federation: RunningFederation) -> None:
    """Of processes that do not run yet."""
    for name, port in federation.ports.items():
        if not federation.pid(name):
            _require_free(port, federation.plan.host if name == "proxy" else LOCAL)


def _require_free(port: int, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        # As servers do: a port whose last connections are only fading out is free.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise UserError(
                f"Port {port} of {host} cannot be used ({error.strerror or error})",
                "Choose another --port, or 0 for any.",
            ) from error


@contextmanager
def running_federation(
    config: Config,
    path: Path,
    clients: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Iterator[RunningFederation]:
    """A federation on this machine for a while, on free ports; nothing is left of it but its
    folder."""
    folder = FederationFolder.at(path)
    plan = prepare(folder, config, clients, environment=environment)
    federation = RunningFederation(folder, plan)
    try:
        federation.start(lambda text: None, patience)
        yield federation
    finally:
        federation.stop()
