"""The folder of a federation, or of one site of it.

config.toml                 the resolved configuration; nodes load their data by it
plan.json                   the processes: command, environment, port, what each waits for
state.json                  the supervisor's notes: process ids, start times, restarts
certs/ca.crt, ca.key        the authority that nodes and drivers trust
certs/server.crt, .key      what the proxy and the SuperLink show
superexec.secret            what the SuperExec proves itself with
superlink.db                the SuperLink's database: nodes, runs, messages on their way
flwr/config.toml            FLWR_HOME of drivers: how they reach the SuperLink
nodes/ID/key, key.pub       a node's identity; node.sock: its worker; flwr/: its FLWR_HOME
nodes/ID/registered         there when the SuperLink knows its public key
held/NAME                   while this file is there, the supervisor does not start NAME
logs/NAME.log               what each process printed
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foul.errors import UserError

SOCKET_PATH_LIMIT = 100
"""Bytes of a socket's path; the kernel allows 107."""


@dataclass(frozen=True)
class FederationFolder:
    """Where things are."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "FederationFolder":
        """The folder at this path, which need not exist; absolute, because processes outlive us."""
        return cls(path.expanduser().absolute())

    @classmethod
    def open(cls, path: Path) -> "FederationFolder":
        """The folder of a federation that was set up.

        Raises:
            UserError: there is none.
        """
        folder = cls.at(path)
        if not folder.plan.is_file():
            raise UserError(
                f"{path} holds no federation",
                "Set one up with `foul federation up`, or name its folder with --dir.",
            )
        return folder

    def create(self, clients: Sequence[str] = ()) -> None:
        """Make the folder; only its owner may look inside.

        Raises:
            UserError: something else is there, or its path is too long for the nodes' sockets,
                or has characters that mean something to shells and to Flower.
        """
        if re.search(r"[\s\"'\\$%;{}]", str(self.path)):
            raise UserError(
                f"{self.path} has spaces, quotes or signs that shells, systemd and nginx read",
                "Choose a plain --dir.",
            )
        for client in clients:
            if len(os.fsencode(self.socket(client))) > SOCKET_PATH_LIMIT:
                raise UserError(
                    f"{self.socket(client)} is too long for a socket's path "
                    f"({SOCKET_PATH_LIMIT} characters)",
                    "Choose a shorter --dir.",
                )
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise UserError(
                f"{self.path} is not empty and holds no federation", "Choose another --dir."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for part in (self.certificates, self.logs, self.held, self.home, self.nodes):
            part.mkdir(mode=0o700)
        # Ours before systemd makes it root's.
        self.log("supervisor").touch(mode=0o600)
        for client in clients:
            self.node(client).mkdir(mode=0o700)
            (self.node(client) / "flwr").mkdir(mode=0o700)

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def certificates(self) -> Path:
        return self.path / "certs"

    @property
    def authority(self) -> Path:
        """The certificate that nodes and drivers trust."""
        return self.certificates / "ca.crt"

    @property
    def secret(self) -> Path:
        return self.path / "superexec.secret"

    @property
    def database(self) -> Path:
        return self.path / "superlink.db"

    @property
    def home(self) -> Path:
        """FLWR_HOME of the SuperLink and of drivers."""
        return self.path / "flwr"

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    @property
    def held(self) -> Path:
        return self.path / "held"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def node(self, client: str) -> Path:
        return self.nodes / client

    def key(self, client: str) -> Path:
        """The private key of this client's node; the public one ends in .pub."""
        return self.node(client) / "key"

    def registration(self, client: str) -> Path:
        return self.node(client) / "registered"

    def socket(self, client: str) -> Path:
        """Where this client's worker listens."""
        return self.node(client) / "node.sock"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"
