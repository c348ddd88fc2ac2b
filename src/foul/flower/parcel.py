"""A request or reply as it travels, and its way through a local socket. No torch in here."""

from dataclasses import dataclass
from multiprocessing.connection import Connection

PROTOCOL = 1
"""Raised when nodes and servers of different foul would misunderstand each other."""
WHO = "who"
"""The task in which a node says which client it serves; all others are the worker's."""


@dataclass(frozen=True)
class Parcel:
    """One request or reply."""

    header: bytes
    """JSON: everything but the tensors."""
    tensors: bytes = b""
    """Safetensors; empty for none."""
    envelope: bytes = b""
    """JSON: of a request, the network's make and the seconds its task may take."""


def send(to: Connection, parcel: Parcel) -> None:
    """Three frames: envelope, header, tensors."""
    for part in (parcel.envelope, parcel.header, parcel.tensors):
        to.send_bytes(part)


def receive(source: Connection, patience: float | None = None) -> Parcel:
    """What `send` sent.

    Raises:
        EOFError, OSError: the other side is gone, or sends nothing for `patience` seconds.
    """
    envelope, header, tensors = (_frame(source, patience) for _ in range(3))
    return Parcel(header, tensors, envelope)


def _frame(source: Connection, patience: float | None) -> bytes:
    if not source.poll(patience):
        raise TimeoutError("nothing was sent")
    return source.recv_bytes()
