"""Hosts and ports as people write them; an IPv6 address has brackets before a port."""

import ipaddress

from foul.errors import UserError

LOCAL = "127.0.0.1"
EVERYWHERE = {"0.0.0.0": LOCAL, "::": "::1"}
"""Addresses that mean all of this machine's, and where it reaches them itself."""


def plain_host(text: str) -> str:
    """A host name or an address without the brackets of an IPv6 address.

    Raises:
        UserError: it is neither.
    """
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in inside or inside != text:
        if not _is_ipv6(inside):
            raise UserError(
                f"'{text}' is no host name and no address",
                "Leave a port out; an address of the link (%eth0) cannot stand in a certificate.",
            )
        return inside
    if not inside or any(letter in inside for letter in "[]/@ "):
        raise UserError(f"'{text}' is no host name and no address", "For example fl.example.org.")
    return inside


def with_port(host: str, port: int) -> str:
    """HOST:PORT, for an IPv6 address [HOST]:PORT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_port(text: str) -> tuple[str, int]:
    """The host and port of what `with_port` writes.

    Raises:
        UserError: it is not HOST:PORT.
    """
    host, separator, port = text.rpartition(":")
    wrong = UserError(
        f"'{text}' is not HOST:PORT", "For example fl.example.org:18443 or [2001:db8::7]:18443."
    )
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise wrong
    if ":" in host and not host.startswith("["):
        raise wrong
    try:
        return plain_host(host), int(port)
    except UserError as error:
        raise wrong from error


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False
