"""A door that counts: passes TCP connections on and adds up the bytes of both directions."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Counts:
    """Bytes as seen from the node."""

    port: int
    down: int = 0
    up: int = 0


@contextmanager
def counting_door(host: str, port: int) -> Iterator[Counts]:
    """A port on loopback that leads to this address."""
    door = socket.create_server(("127.0.0.1", 0))
    counts = Counts(door.getsockname()[1])
    lock = threading.Lock()

    def pump(source: socket.socket, sink: socket.socket, direction: str) -> None:
        try:
            while data := source.recv(65536):
                with lock:
                    setattr(counts, direction, getattr(counts, direction) + len(data))
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()

    def accept() -> None:
        while True:
            try:
                node, _ = door.accept()
                server = socket.create_connection((host, port))
            except OSError:
                return
            for pair in ((server, node, "down"), (node, server, "up")):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield counts
    finally:
        door.close()
