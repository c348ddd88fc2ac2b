"""Ports of this machine."""

import socket
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from foul.deploy.addresses import LOCAL
from foul.errors import UserError


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOCAL, 0))
        return [each.getsockname()[1] for each in sockets]


def ports_from(first: int, hosts: Sequence[str]) -> list[int]:
    """A port for each of these addresses, one after the other; `first` 0: any that are free.

    Raises:
        UserError: one is taken.
    """
    if first == 0:
        return free_ports(len(hosts))
    ports = list(range(first, first + len(hosts)))
    for port, host in zip(ports, hosts, strict=True):
        require_free(port, host)
    return ports


def require_free(port: int, host: str = LOCAL) -> None:
    """
    Raises:
        UserError: a server could not listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        # As servers do: a port whose last connections are only fading out is free.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"Port {port} of {host} cannot be used ({reason})",
                "Choose another --port, or 0 for any.",
            ) from error


def is_served(host: str, port: int, authority: Path) -> bool:
    """Whether a server with a certificate of this authority listens there, and not another's."""
    trust = ssl.create_default_context(cafile=str(authority))
    try:
        with (
            socket.create_connection((host, port), 5) as plain,
            trust.wrap_socket(plain, server_hostname="localhost"),
        ):
            return True
    except OSError:
        return False
