"""A federation that runs, or should: start it, look at it, stop it."""

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foul.config.schema import Config
from foul.deploy.addresses import LOCAL, split_port
from foul.deploy.control import Control
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import CONNECTION, Plan, driver_environment
from foul.deploy.ports import is_served, require_free
from foul.deploy.prepare import prepare_server
from foul.deploy.processes import gone, marked, seconds_since, send, stop
from foul.deploy.supervisor import Note, launch, read_notes
from foul.errors import MachineError, UserError

PATIENCE = 180.0
"""Seconds until a federation must be up: a node is refused for a minute after it was killed."""
TRIES = 2
"""So often a process may end before it counts as broken; a SuperNode may until the deadline."""
LOG_TAIL = 15
"""Lines of a log in an error."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class RunningFederation:
    """The processes of one folder: a server with nodes, or one site of a server elsewhere."""

    folder: FederationFolder
    plan: Plan
    connection = CONNECTION
    """The SuperLink's name for `flwr run APP NAME`."""

    @classmethod
    def open(cls, path: Path) -> "RunningFederation":
        """The federation in this folder.

        Raises:
            UserError: there is none.
        """
        folder = FederationFolder.open(path)
        return cls(folder, Plan.read(folder.plan))

    @property
    def address(self) -> str:
        """Where drivers on this machine reach the SuperLink.

        Raises:
            UserError: it is on another machine.
        """
        if self.plan.superlink is None:
            raise UserError(
                f"{self.folder.path} is a site; its server is {self.plan.door}",
                "Ask there, in the server's folder.",
            )
        return self.plan.superlink

    @property
    def is_server(self) -> bool:
        return self.plan.superlink is not None

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
        """Wait until the nodes of these clients, as they run here now, are online.

        Raises:
            MachineError: they are not.
        """
        _wait(
            lambda: set(clients) <= self._arrived(),
            timeout,
            lambda: MachineError(f"Not online after {timeout:.0f} s: {', '.join(clients)}"),
        )

    def listens(self, client: str) -> bool:
        """Whether this client's worker takes calls."""
        with socket.socket(socket.AF_UNIX) as trial:
            try:
                trial.connect(str(self.folder.socket(client)))
            except OSError:
                return False
            return True

    def has_joined(self, client: str) -> bool:
        """Whether this client's SuperNode, since it was started last, was let in."""
        last = self.log(f"supernode-{client}").rpartition("Starting Flower SuperNode")[2]
        joined = re.search(r"SuperNode ID: \d+", last) is not None
        return joined and self.pid(f"supernode-{client}") > 0

    def start(self, tell: Tell = print, patience: float = PATIENCE) -> None:
        """Start what does not run, and wait until all nodes here are online. Those of a site
        may be unknown at the server yet: there, it is enough that the worker is ready.

        Raises:
            UserError: a port is taken.
            MachineError: something does not start; the end of its log is in the error. What this
                call started is stopped again.
        """
        before = {name: note.restarts for name, note in self.notes().items() if note.alive}
        watch = _Watch(tell, time.monotonic() + patience, before)
        launched = not self.supervised
        if launched:
            self._require_free_ports()
            self._launch()
        try:
            if self.is_server:
                self._bring_up(watch)
            self._bring_workers_up(watch)
            if self.is_server:
                self._gather(self._arrived, "nodes online", "supernode", watch)
        except BaseException:
            if launched:
                self.stop()
            raise

    def stop(self, patience: float = 40.0) -> None:
        """Stop everything, politely first; also what a killed supervisor left behind."""
        supervisor = self.pid("supervisor")
        if supervisor:
            send(signal.SIGTERM, [supervisor])
            gone([supervisor], patience)
        stop(marked(str(self.folder.path)), 10)
        self.folder.state.unlink(missing_ok=True)

    def register(self, public_key: Path, client: str) -> int:
        """Let the owner of this key serve this client; the number of its node.

        Raises:
            UserError: the client has a node already.
        """
        known = {node.name: node for node in self.control.nodes() if node.registered}
        if client in known:
            raise UserError(
                f"Client '{client}' has a node already ({known[client].status})",
                f"Remove it first: foul federation unregister {client}",
            )
        return self.control.register(public_key, client)

    def unregister(self, client: str) -> None:
        """Never let this client's node in again; one that runs here ends.

        Raises:
            UserError: it has none.
        """
        known = {node.name: node for node in self.control.nodes() if node.registered}
        if client not in known:
            raise UserError(
                f"No node is registered for client '{client}'",
                f"Registered: {', '.join(known) or 'none'}.",
            )
        self.control.unregister(known[client].id)
        if client in self.plan.clients:
            self.folder.registration(client).unlink(missing_ok=True)
            names = [f"supernode-{client}", f"worker-{client}"]
            for name in names:
                self.hold(name)
            stop([pid for pid in map(self.pid, names) if pid], 10)

    def _require_free_ports(self) -> None:
        """Of processes that do not run."""
        for name, port in self.ports.items():
            if name != "proxy" and not self.pid(name):
                require_free(port, LOCAL)

    def _launch(self) -> None:
        if not launch(self.folder):
            raise self._broken("supervisor", "does not start")
        _wait(lambda: self.supervised, 30, lambda: self._broken("supervisor", "does not start"))

    def _bring_up(self, watch: "_Watch") -> None:
        """Wait for the SuperLink; make it know the keys of the nodes here."""
        watch.tell("SuperLink: starting")
        self._await(self.control.healthy, lambda: "superlink", watch)
        # A client may have had another key before.
        nodes = sorted(self.control.nodes(), key=lambda node: node.registered)
        known = {node.name: node for node in nodes}
        for client in self.plan.clients:
            public = self.folder.key(client).with_suffix(".pub")
            if client not in known:
                self.control.register(public, client)
            if client not in known or known[client].registered:
                self.folder.registration(client).touch()
        watch.tell("SuperLink: up")
        if not (self.folder.held / "proxy").exists():
            self._await(self._open_to_nodes, lambda: "proxy", watch)

    def _open_to_nodes(self) -> bool:
        """Whether our proxy, and no other program, listens where nodes will call."""
        return is_served(*split_port(self.plan.door), self.folder.authority)

    def _admitted(self) -> set[str]:
        """Clients here whose node may join; at a site, its own."""
        if not self.is_server:
            return set(self.plan.clients)
        return {client for client in self.plan.clients if self.folder.registration(client).exists()}

    def _bring_workers_up(self, watch: "_Watch") -> None:
        def ready() -> set[str]:
            return {client for client in self.plan.clients if self.listens(client)}

        self._gather(ready, "workers ready", "worker", watch)

    def _gather(self, here: Callable[[], set[str]], what: str, kind: str, watch: "_Watch") -> None:
        """Wait until all clients are here; tell when their number changes."""
        wanted, shown = self._admitted(), -1

        def complete() -> bool:
            nonlocal shown
            count = len(wanted & here())
            if count != shown and wanted:
                watch.tell(f"{what}: {count} of {len(wanted)}")
                shown = count
            return count == len(wanted)

        self._await(complete, lambda: f"{kind}-{min(wanted - here(), default='?')}", watch)

    def _arrived(self) -> set[str]:
        """Clients whose node has joined since it was started. For a minute after a node was
        killed, the SuperLink believes it to be online."""
        notes, arrived = self.notes(), set()
        for node in self.control.nodes():
            note = notes.get(f"supernode-{node.name}", Note())
            if node.status == "online" and note.alive:
                started = time.time() - seconds_since(note.started)
                if node.joined > started - 1:
                    arrived.add(node.name)
        return arrived

    def _await(
        self, condition: Callable[[], bool], late: Callable[[], str], watch: "_Watch"
    ) -> None:
        """Wait for a condition while no process gives up.

        Raises:
            MachineError: one did, or the deadline passed; then `late` names the culprit.
        """
        while not condition():
            for name, note in self.notes().items():
                ends = note.restarts - watch.restarts.get(name, 0)
                if ends >= TRIES and not name.startswith("supernode-"):
                    raise self._broken(name, f"ended {ends} times")
            if time.monotonic() > watch.deadline:
                raise self._broken(late(), "is not ready in time")
            time.sleep(0.3)

    def _broken(self, name: str, what: str) -> MachineError:
        lines = self.log(name).splitlines()[-LOG_TAIL:]
        tail = "\n".join(f"  {line}" for line in lines) or "  (empty)"
        return MachineError(f"{name} {what}. The end of {self.folder.log(name)}:\n{tail}\n")


@dataclass(frozen=True)
class _Watch:
    """While a federation starts: whom to tell, until when, and how often each process had ended
    before."""

    tell: Tell
    deadline: float
    restarts: Mapping[str, int]


def _wait(condition: Callable[[], bool], timeout: float, error: Callable[[], Exception]) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise error()
        time.sleep(0.1)


@contextmanager
def running_federation(
    config: Config,
    path: Path,
    clients: Sequence[str],
    *,
    host: str = LOCAL,
    environment: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Iterator[RunningFederation]:
    """A federation on this machine for a while, on free ports; nothing is left of it but its
    folder."""
    folder = FederationFolder.at(path)
    plan = prepare_server(folder, config, clients, host=host, environment=environment)
    federation = RunningFederation(folder, plan)
    try:
        federation.start(lambda text: None, patience)
        yield federation
    finally:
        federation.stop()
