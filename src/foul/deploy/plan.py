"""Which processes make up a federation: their commands, ports, and what they wait for."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from foul.deploy.addresses import EVERYWHERE, LOCAL, with_port
from foul.deploy.folder import FederationFolder
from foul.runs.atomic import write_text

CONNECTION = "foul"
"""The SuperLink's name in the configuration of drivers."""
QUIET_FLOWER = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.25",
}
"""Flower calls nobody, installs nothing, and looks for work four times a second."""


@dataclass(frozen=True)
class Process:
    """A process that the supervisor keeps alive.

    Attributes:
        name: also that of its log.
        command: program and arguments.
        environment: what it gets besides ours.
        port: where it listens, if it does.
        waits_for: it starts when this file is there.
        rank: processes stop in the order of falling ranks.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    port: int | None = None
    waits_for: str | None = None
    rank: int = 0


@dataclass(frozen=True)
class Plan:
    """A federation, or one site of it, as it was set up.

    Attributes:
        clients: ids of the clients whose nodes run here.
        door: host and port where nodes find the server.
        processes: in the order they start.
    """

    clients: tuple[str, ...]
    door: str
    processes: tuple[Process, ...]

    @property
    def ports(self) -> dict[str, int]:
        return {p.name: p.port for p in self.processes if p.port is not None}

    @property
    def superlink(self) -> str | None:
        """Where local processes reach the SuperLink; None at a site, which has none."""
        port = self.ports.get("superlink")
        return None if port is None else f"{LOCAL}:{port}"

    def write(self, path: Path) -> None:
        write_text(path, json.dumps(asdict(self), indent=2))

    @classmethod
    def read(cls, path: Path) -> "Plan":
        values = json.loads(path.read_text(encoding="utf-8"))
        processes = tuple(
            Process(**{**entry, "command": tuple(entry["command"])})
            for entry in values["processes"]
        )
        return cls(tuple(values["clients"]), values["door"], processes)


def plan_server(
    folder: FederationFolder,
    clients: Sequence[str],
    host: str,
    ports: Sequence[int],
    environment: Mapping[str, str],
) -> Plan:
    """The processes of a server and of these clients' nodes on this machine.

    Args:
        ports: of the proxy, the SuperLink, and each node.
    """
    public, link, *own = ports
    door = with_port(EVERYWHERE.get(host, host), public)
    processes = server_processes(folder, host, public, link)
    for client, port in zip(clients, own, strict=True):
        # Before its key is registered, the SuperLink refuses it.
        sign = str(folder.registration(client))
        processes += node_processes(folder, client, door, port, waits_for=sign)
    return Plan(tuple(clients), door, _with(environment, processes))


def plan_site(
    folder: FederationFolder,
    client: str,
    door: str,
    port: int,
    data: Sequence[str],
    environment: Mapping[str, str],
) -> Plan:
    """The processes of one client's node, for a server elsewhere.

    Args:
        data: options of `foul node` that say where the client's images are.
    """
    processes = node_processes(folder, client, door, port, data)
    return Plan((client,), door, _with(environment, processes))


def _with(environment: Mapping[str, str], processes: Sequence[Process]) -> tuple[Process, ...]:
    common = {**QUIET_FLOWER, "OMP_NUM_THREADS": "1", **environment}
    return tuple(replace(p, environment={**common, **p.environment}) for p in processes)


def server_processes(folder: FederationFolder, host: str, public: int, link: int) -> list[Process]:
    """SuperLink and SuperExec, reachable from this machine only, and the proxy before them."""
    certificates = folder.certificates
    home = {"FLWR_HOME": str(folder.home)}
    authority = ("--root-certificates", str(folder.authority))
    secret = ("--superexec-auth-secret-file", str(folder.secret))
    superlink = (
        *(program("flower-superlink"), "--host", LOCAL, "--port", str(link)),
        *("--ssl-ca-certfile", str(folder.authority)),
        *("--ssl-certfile", str(certificates / "server.crt")),
        *("--ssl-keyfile", str(certificates / "server.key")),
        *("--enable-supernode-auth", "--database", str(folder.database)),
        *("--isolation", "process", *secret),
        "--disable-runtime-dependency-installation",
    )
    address = f"{LOCAL}:{link}"
    superexec = (program("flower-superexec"), *authority, "--runtime-api-address", address, *secret)
    proxy = (
        *(sys.executable, "-m", "foul.deploy.proxy", "--host", host, "--port", str(public)),
        *("--certificate", str(certificates / "server.crt")),
        *("--key", str(certificates / "server.key")),
        *("--upstream", f"https://{address}", "--upstream-ca", str(folder.authority)),
    )
    return [
        Process("superlink", superlink, home, link, rank=0),
        Process("superexec", superexec, home, rank=1),
        Process("proxy", proxy, port=public, rank=2),
    ]


def node_processes(
    folder: FederationFolder,
    client: str,
    door: str,
    port: int,
    data: Sequence[str] = (),
    waits_for: str | None = None,
) -> list[Process]:
    """The warm worker of a client and the SuperNode beside it."""
    worker = (
        *(sys.executable, "-m", "foul", "node", str(folder.config), "threads=1"),
        *("--client", client, "--socket", str(folder.socket(client))),
        *("--state", str(folder.node(client) / "state"), *data),
    )
    settings = f'client-id="{client}" worker-socket="{folder.socket(client)}"'
    supernode = (
        *(program("flower-supernode"), "--superlink", door),
        *("--root-certificates", str(folder.authority)),
        *("--auth-supernode-private-key", str(folder.key(client))),
        *("--host", LOCAL, "--port", str(port), "--node-config", settings),
    )
    home = {"FLWR_HOME": str(folder.node(client) / "flwr")}
    return [
        Process(f"worker-{client}", worker, rank=3),
        Process(f"supernode-{client}", supernode, home, port, waits_for, rank=4),
    ]


def program(name: str) -> str:
    """A program of this Python environment, which need not be on the path."""
    return str(Path(sys.executable).parent / name)


def search_path() -> str:
    """The path on which Flower's programs find each other."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def driver_environment(folder: FederationFolder) -> dict[str, str]:
    """The environment in which `flwr` and `foul ... engine=flower` find this federation."""
    return {**os.environ, **QUIET_FLOWER, "PATH": search_path(), "FLWR_HOME": str(folder.home)}


def driver_config(folder: FederationFolder, plan: Plan) -> str:
    """FLWR_HOME/config.toml: the SuperLink's address and whom to trust."""
    return (
        f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        f'address = "{plan.superlink}"\nroot-certificates = "{folder.authority}"\n'
    )
