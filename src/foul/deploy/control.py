"""What a driver asks of a SuperLink: which nodes it knows, and to know one more.

`flwr supernode register` and `flwr supernode list` do the same, but cost a process each and do
not tell names.
"""

import datetime
import json
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_public_key,
)

from foul.errors import MachineError, UserError


@dataclass(frozen=True)
class Node:
    """A node as the SuperLink knows it: its number belongs to its public key."""

    id: int
    name: str
    status: str
    """registered, online, offline or unregistered."""
    joined: float
    """When it came online last, in seconds since 1970; 0 if it never did."""

    @property
    def registered(self) -> bool:
        """Whether it may join."""
        return self.status != "unregistered"


@dataclass(frozen=True)
class Control:
    """The control calls of the SuperLink at this address, verified by this authority."""

    address: str
    authority: Path

    def healthy(self) -> bool:
        """Whether it answers."""
        context = ssl.create_default_context(cafile=str(self.authority))
        try:
            url = f"https://{self.address}/health"
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def nodes(self) -> list[Node]:
        """All nodes it knows, sorted by name."""
        from flwr.proto.control_pb2 import ListNodesRequest

        with self._client() as client:
            found = client.ListNodes(ListNodesRequest()).nodes_info
        return sorted(
            (Node(n.node_id, n.name, n.status, _seconds(n.last_activated_at)) for n in found),
            key=lambda node: (node.name, node.id),
        )

    def register(self, public_key: Path, name: str) -> int:
        """Let the owner of this key serve the client of this name; the node's number.

        Raises:
            UserError: the file holds no public key, or the SuperLink refuses it.
        """
        from flwr.proto.control_pb2 import RegisterNodeRequest

        try:
            key = load_ssh_public_key(public_key.read_bytes())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UserError(
                f"{public_key} holds no public key",
                "It is nodes/ID/key.pub of the site's folder; the file without .pub stays there.",
            ) from error
        encoded = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        with self._client() as client:
            reply = client.RegisterNode(RegisterNodeRequest(public_key=encoded, name=name))
        return int(reply.node_id)

    def unregister(self, node: int) -> None:
        """Never let this node in again."""
        from flwr.proto.control_pb2 import UnregisterNodeRequest

        with self._client() as client:
            client.UnregisterNode(UnregisterNodeRequest(node_id=node))

    @contextmanager
    def _client(self) -> Iterator[Any]:
        import httpx
        from flwr.supercore.control import ControlHttpClient
        from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor

        client = ControlHttpClient.from_server_address(
            self.address,
            False,
            self.authority.read_bytes(),
            [RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
        )
        try:
            with client:
                yield client
        except httpx.HTTPStatusError as error:
            raise UserError(f"The SuperLink refused: {_reason(error.response.text)}") from error
        except httpx.TransportError as error:
            raise MachineError(
                f"The SuperLink at {self.address} does not answer ({error})",
                "`foul federation status` and `foul federation logs superlink` say more.",
            ) from error


def _seconds(moment: str) -> float:
    return datetime.datetime.fromisoformat(moment).timestamp() if moment else 0.0


def _reason(text: str) -> str:
    """Flower's own words in its JSON reply."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200] or "no reason given"
