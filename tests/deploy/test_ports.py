"""Free ports, and clear words about those that are not."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from foul.deploy.certificates import make_authority, make_server_certificate
from foul.deploy.ports import free_ports, is_served, ports_from, require_free
from foul.errors import UserError


def test_free_ports_differ_and_can_be_used() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    for port in ports:
        require_free(port)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} of 127\.0\.0\.1.*another --port"):
            ports_from(port, ["127.0.0.1"])
        # Also if it is not the first one.
        with pytest.raises(UserError, match=f"Port {port} "):
            ports_from(port - 1, ["127.0.0.1", "127.0.0.1"])


def test_ports_follow_each_other_or_are_any() -> None:
    assert len(set(ports_from(0, ["127.0.0.1"] * 3))) == 3
    (first,) = free_ports(1)
    assert ports_from(first, ["127.0.0.1"]) == [first]


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 20000), ("127.0.0.1", 70000)])
def test_what_is_no_port_of_this_machine_is_refused(host: str, port: int) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        require_free(port, host)


@contextmanager
def tls_server(certificates: Path) -> Iterator[int]:
    """A server that shows this folder's certificate; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_our_server_is_known_by_its_certificate(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        make_authority(tmp_path / name)
        make_server_certificate(tmp_path / name, [])
    with tls_server(tmp_path / "ours") as port:
        assert is_served("127.0.0.1", port, tmp_path / "ours" / "ca.crt")
        assert not is_served("127.0.0.1", port, tmp_path / "theirs" / "ca.crt")
    assert not is_served("127.0.0.1", port, tmp_path / "ours" / "ca.crt")
