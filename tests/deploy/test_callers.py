"""Who connects and says nothing blocks nobody, and is cut off; who speaks is not."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs foul[flower]")

from deploy.test_proxy import CALL, Door, Upstream, serving, superlink
from foul.deploy import callers, proxy
from foul.deploy.certificates import make_authority, make_server_certificate

PLACES = 4
SILENCE = 2.0
AT_LAST = 15.0
"""Seconds by which even a busy machine has hung up; without us, it would take a minute."""


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """A proxy with few places and little patience."""
    monkeypatch.setattr(proxy, "CONNECTIONS", PLACES)
    monkeypatch.setattr(callers, "SILENCE", SILENCE)
    make_authority(tmp_path)
    make_server_certificate(tmp_path, [])
    upstream, files = Upstream(), (tmp_path / "server.crt", tmp_path / "server.key")
    with serving(superlink(upstream)) as port:
        app = proxy.FleetProxy(f"http://127.0.0.1:{port}", True)
        with serving(proxy.server(app, "127.0.0.1", 0, *files)) as public:
            yield Door(public, tmp_path / "ca.crt", upstream)


@pytest.fixture
def connect(door: Door) -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def plain(door: Door, stack: contextlib.ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", door.port), 10))


def greeted(door: Door, stack: contextlib.ExitStack) -> ssl.SSLSocket:
    trust = ssl.create_default_context(cafile=str(door.authority))
    secure = trust.wrap_socket(plain(door, stack), server_hostname="localhost")
    return stack.enter_context(secure)


def cut_after(connection: socket.socket) -> float:
    """Seconds until the proxy hangs up."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        assert connection.recv(1000) == b""
    return time.monotonic() - began


def test_silent_connections_block_nobody(door: Door, connect: contextlib.ExitStack) -> None:
    for _ in range(3 * PLACES):
        greeted(door, connect)
        plain(door, connect)
    assert door.call(CALL) == (200, b"reply")


def test_connections_that_are_idle_after_a_call_block_nobody(
    door: Door, connect: contextlib.ExitStack
) -> None:
    for _ in range(3 * PLACES):
        kept = connect.enter_context(contextlib.closing(door.connect()))
        kept.request("POST", CALL)
        answer = kept.getresponse()
        assert (answer.status, answer.read()) == (200, b"reply")


def test_calls_that_follow_each_other_closely_are_all_answered(
    door: Door, connect: contextlib.ExitStack
) -> None:
    call = f"POST {CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode()
    connection = greeted(door, connect)
    connection.sendall(3 * call)
    answer = b""
    while answer.count(b"reply") < 3:
        part = connection.recv(1000)
        assert part, answer
        answer += part
    assert answer.count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(
    "said", [b"", b"POST /v1/fleet/pull-mess", b"POST /v1/fleet/a HTTP/1.1\r\n"]
)
def test_who_does_not_say_what_it_wants_is_cut_off(
    door: Door, connect: contextlib.ExitStack, said: bytes
) -> None:
    connection = greeted(door, connect)
    connection.sendall(said)
    assert 0.5 * SILENCE < cut_after(connection) < AT_LAST


def test_one_byte_now_and_then_wins_no_time(door: Door, connect: contextlib.ExitStack) -> None:
    connection = greeted(door, connect)
    began = time.monotonic()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while time.monotonic() < began + 2 * AT_LAST:
            connection.sendall(b"P")
            time.sleep(SILENCE / 6)
    assert SILENCE / 2 < time.monotonic() - began < AT_LAST


def test_who_does_not_greet_is_cut_off(door: Door, connect: contextlib.ExitStack) -> None:
    assert 0.5 * SILENCE < cut_after(plain(door, connect)) < AT_LAST


def test_who_speaks_may_take_its_time(door: Door, connect: contextlib.ExitStack) -> None:
    connection = connect.enter_context(contextlib.closing(door.connect()))
    for _ in range(2):
        connection.putrequest("POST", CALL)
        connection.putheader("content-length", "2")
        connection.endheaders()
        time.sleep(1.5 * SILENCE)
        connection.send(b"ab")
        assert connection.getresponse().read() == b"reply"
        # Between two calls it is idle, which is allowed too.
        time.sleep(1.5 * SILENCE)
    assert len(door.upstream.calls) == 2


def test_half_a_second_call_is_cut_off_as_well(door: Door, connect: contextlib.ExitStack) -> None:
    connection = greeted(door, connect)
    connection.sendall(f"POST {CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode())
    answer = connection.recv(1000)
    assert answer.startswith(b"HTTP/1.1 200")
    while not answer.endswith(b"reply"):
        part = connection.recv(1000)
        assert part, answer
        answer += part
    time.sleep(1.5 * SILENCE)
    connection.sendall(b"POST /v1")
    assert cut_after(connection) < AT_LAST


def test_more_calls_at_once_than_places_are_refused(
    door: Door, connect: contextlib.ExitStack
) -> None:
    for _ in range(PLACES):
        busy = connect.enter_context(contextlib.closing(door.connect()))
        busy.putrequest("POST", CALL)
        busy.putheader("content-length", "5")
        busy.endheaders()
        busy.send(b"x")
        assert door.upstream.first_chunk.wait(30)
        door.upstream.first_chunk.clear()
    assert door.call(CALL)[0] == 503
