"""The proxy passes the calls of nodes on, streaming, and nothing else gets through."""

import contextlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.deploy.certificates import make_authority, make_server_certificate
from foul.errors import UserError

pytest.importorskip("flwr", reason="needs foul[flower]")

import uvicorn

from foul.deploy import proxy

CALL = "/v1/fleet/pull-messages"


@dataclass
class Upstream:
    """What a SuperLink would see, and what it answers."""

    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    reply: bytes = b"reply"
    status: int = 200
    first_chunk: threading.Event = field(default_factory=threading.Event)

    def forget(self) -> None:
        self.calls.clear()
        self.first_chunk.clear()
        self.reply, self.status = b"reply", 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if body:
                self.first_chunk.set()
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        self.calls.append((scope["raw_path"].decode(), headers, bytes(body)))
        length = [(b"content-length", str(len(self.reply)).encode()), (b"x-flower", b"yes")]
        await send({"type": "http.response.start", "status": self.status, "headers": length})
        await send({"type": "http.response.body", "body": self.reply})


@contextlib.contextmanager
def serving(server: uvicorn.Server, places: list[socket.socket] | None = None) -> Iterator[int]:
    """A server in a thread; its port."""
    thread = threading.Thread(target=server.run, args=(places,))
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def superlink(upstream: Upstream, certificates: Path | None = None) -> uvicorn.Server:
    """A server that shows this certificate, or none."""
    tls = (
        {
            "ssl_certfile": str(certificates / "server.crt"),
            "ssl_keyfile": str(certificates / "server.key"),
        }
        if certificates
        else {}
    )
    config = uvicorn.Config(
        upstream,
        host="127.0.0.1",
        port=0,
        ws="none",
        lifespan="off",
        log_level="critical",
        **tls,  # type: ignore[arg-type]
    )
    return uvicorn.Server(config)


@dataclass
class Door:
    """The proxy's port and certificate, and what is behind it."""

    port: int
    authority: Path
    upstream: Upstream

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=10)

    def call(
        self, path: str, method: str = "POST", body: bytes = b"", **headers: str
    ) -> tuple[int, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def raw(self, text: bytes) -> bytes:
        """What comes back for these bytes, until the proxy hangs up."""
        context = ssl.create_default_context(cafile=str(self.authority))
        with (
            socket.create_connection(("127.0.0.1", self.port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            received = b""
            # a proxy that refuses may hang up while we are still sending: SSLEOFError
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                connection.sendall(text)
            with contextlib.suppress(TimeoutError, ssl.SSLError, ConnectionError):
                # Something comes in any case; then a pause says that it was all.
                connection.settimeout(20)
                while chunk := connection.recv(65536):
                    received += chunk
                    connection.settimeout(2)
            return received


@pytest.fixture(scope="module")
def door_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    certificates = tmp_path_factory.mktemp("certs")
    make_authority(certificates)
    make_server_certificate(certificates, [])
    upstream = Upstream()
    with serving(superlink(upstream)) as port:
        app = proxy.FleetProxy(f"http://127.0.0.1:{port}", True)
        files = certificates / "server.crt", certificates / "server.key"
        with serving(proxy.server(app, "127.0.0.1", 0, *files)) as public:
            yield Door(public, certificates / "ca.crt", upstream)


@pytest.fixture
def door(door_for_all: Door) -> Door:
    """With nothing behind it yet."""
    door_for_all.upstream.forget()
    return door_for_all


def test_a_nodes_call_and_its_reply_pass_unchanged(door: Door) -> None:
    door.upstream.reply = bytes(range(256)) * 4000
    body = b"\x00\xff" * 500_000
    assert door.call(CALL, body=body, flwr_signature="abc") == (200, door.upstream.reply)
    ((path, headers, seen),) = door.upstream.calls
    assert (path, seen) == (CALL, body)
    assert headers["flwr-signature"] == "abc"
    assert headers["content-length"] == str(len(body))
    # Nothing was added: who does not ask for compression gets none.
    assert set(headers) <= {
        *("host", "content-length", "accept-encoding", "flwr-signature", "x-forwarded-for"),
        "connection",
    }


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_refusal_of_the_superlink_passes_too(door: Door, status: int) -> None:
    door.upstream.status, door.upstream.reply = status, b'{"code": 1}'
    assert door.call(CALL) == (status, b'{"code": 1}')


REFUSED = [
    "/v1/control/list-runs",
    "/v1/control/start-run",
    "/v1/runtime/acquire-task",
    "/health",
    "/docs",
    "/openapi.json",
    "/",
    "/v1/fleet",
    "/v1/fleet/",
    "/v1/fleet/../control/start-run",
    "/v1/fleet/%2e%2e/control/start-run",
    "/v1/fleet/pull-messages/../../control/start-run",
    "/v1/fleet//control",
    "//v1/fleet/pull-messages",
    "/V1/FLEET/pull-messages",
    "/v1/fleet/pull-messages?x=/v1/control/start-run",
    "/v1/fleet/pull-messages;/v1/control",
    "/v1/fleet\\..\\control",
    "http://127.0.0.1/v1/control/start-run",
]


@pytest.mark.parametrize("path", REFUSED)
def test_everything_else_is_refused_and_never_arrives(door: Door, path: str) -> None:
    assert door.call(path)[0] == 404
    assert door.upstream.calls == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "CONNECT", "HEAD"])
def test_nodes_only_post(door: Door, method: str) -> None:
    assert door.call(CALL, method)[0] == 404
    assert door.upstream.calls == []


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_only_plain_names_below_fleet_match(rest: str) -> None:
    passes = proxy.FLEET.fullmatch(b"/v1/fleet/" + rest.encode()) is not None
    assert passes == bool(re.match(r"^([a-z]+-)*[a-z]+\Z", rest))


def test_a_second_request_hidden_in_a_body_is_a_body(door: Door) -> None:
    hidden = b"POST /v1/control/start-run HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
    head = f"POST {CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(hidden)}\r\n\r\n"
    answer = door.raw(head.encode() + hidden)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert [(path, body) for path, _, body in door.upstream.calls] == [(CALL, hidden)]


@pytest.mark.parametrize(
    "framing",
    [
        "content-length: 3\r\ncontent-length: 30",
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "content-length: +5",
        "content-length: -1",
    ],
)
def test_a_body_of_unclear_length_reaches_no_control_call(door: Door, framing: str) -> None:
    hidden = b"0\r\n\r\nPOST /v1/control/start-run HTTP/1.1\r\nhost: x\r\n\r\n"
    head = f"POST {CALL} HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n"
    door.raw(head.encode() + hidden)
    assert all(path == CALL for path, _, _ in door.upstream.calls)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("to", ["websocket", "h2c"])
def test_nobody_changes_the_protocol(door: Door, version: str, to: str) -> None:
    more = f"connection: upgrade, http2-settings\r\nupgrade: {to}\r\nhttp2-settings: AAMAAABk\r\n"
    head = f"POST {CALL} HTTP/{version}\r\nhost: x\r\ncontent-length: 0\r\n{more}\r\n"
    hidden = b"POST /v1/control/start-run HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
    answer = door.raw(head.encode() + hidden)
    assert b" 101 " not in answer
    assert [path for path, _, _ in door.upstream.calls] == [CALL]
    assert "upgrade" not in door.upstream.calls[0][1]


def test_a_kept_connection_is_checked_for_every_request(door: Door) -> None:
    with contextlib.closing(door.connect()) as connection:
        for path, status in ((CALL, 200), (CALL, 200), ("/v1/control/list-runs", 404)):
            connection.request("POST", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
    assert len(door.upstream.calls) == 2


def test_headers_over_the_limit_are_refused(door: Door) -> None:
    status, _ = door.call(CALL, padding="x" * (proxy.HEAD_LIMIT // 2))
    assert status == 200
    answer = door.raw(
        f"POST {CALL} HTTP/1.1\r\nhost: x\r\npadding: {'x' * 4 * proxy.HEAD_LIMIT}\r\n".encode()
    )
    assert not answer.startswith(b"HTTP/1.1 200")
    assert len(door.upstream.calls) == 1


def test_a_body_over_the_limit_is_refused(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "BODY_LIMIT", 1000)
    assert door.call(CALL, body=b"x" * 1000)[0] == 200
    assert door.call(CALL, body=b"x" * 1001)[0] == 413
    chunked = f"POST {CALL} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    body = b"".join(b"200\r\n" + b"x" * 0x200 + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
    assert door.raw(chunked.encode() + body).startswith(b"HTTP/1.1 413")
    assert len(door.upstream.calls) == 1


def test_bodies_stream(door: Door) -> None:
    """The first part of a body arrives while the rest has not been sent."""
    with contextlib.closing(door.connect()) as connection:
        connection.putrequest("POST", CALL)
        connection.putheader("content-length", "200000")
        connection.endheaders()
        connection.send(b"x" * 100_000)
        assert door.upstream.first_chunk.wait(30)
        connection.send(b"y" * 100_000)
        assert connection.getresponse().read() == b"reply"


def test_who_calls_cannot_be_made_up(door: Door) -> None:
    door.call(CALL, X_Forwarded_For="10.0.0.1", Forwarded="for=10.0.0.1")
    ((_, headers, _),) = door.upstream.calls
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert "forwarded" not in headers


def test_without_tls_there_is_no_answer(door: Door) -> None:
    with socket.create_connection(("127.0.0.1", door.port), 5) as plain:
        plain.sendall(f"POST {CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert plain.recv(1000) == b""
    assert door.upstream.calls == []


def test_a_superlink_that_is_away_is_502_so_that_nodes_try_again(door: Door) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        app = proxy.FleetProxy(f"http://127.0.0.1:{nobody.getsockname()[1]}", True)
        folder = door.authority.parent
        files = folder / "server.crt", folder / "server.key"
        with serving(proxy.server(app, "127.0.0.1", 0, *files)) as port:
            assert Door(port, door.authority, door.upstream).call(CALL)[0] == 502


def test_without_tls_only_a_superlink_on_this_machine_is_reached() -> None:
    assert proxy.upstream_trust("http://127.0.0.1:1", None) is True
    assert proxy.upstream_trust("http://[::1]:1", None) is True
    for upstream in ("http://192.0.2.1:1", "http://fl.example.org:1", "ftp://127.0.0.1"):
        with pytest.raises(UserError, match="without TLS"):
            proxy.upstream_trust(upstream, None)


def test_a_superlink_with_a_foreign_certificate_is_not_trusted(door: Door, tmp_path: Path) -> None:
    make_authority(tmp_path)
    make_server_certificate(tmp_path, [])
    with serving(superlink(Upstream(), tmp_path)) as port:
        url, folder = f"https://127.0.0.1:{port}", door.authority.parent
        files = folder / "server.crt", folder / "server.key"
        for authority, status in ((tmp_path / "ca.crt", 200), (door.authority, 502)):
            app = proxy.FleetProxy(url, proxy.upstream_trust(url, authority))
            with serving(proxy.server(app, "127.0.0.1", 0, *files)) as public:
                assert Door(public, door.authority, door.upstream).call(CALL)[0] == status


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")
@pytest.mark.parametrize(("host", "callers"), [("::1", ["::1"]), ("::", ["::1", "127.0.0.1"])])
def test_the_proxy_listens_on_ipv6(door: Door, host: str, callers: list[str]) -> None:
    trust = ssl.create_default_context(cafile=str(door.authority))
    folder = door.authority.parent
    files = folder / "server.crt", folder / "server.key"
    with serving(superlink(door.upstream)) as behind:
        app = proxy.FleetProxy(f"http://127.0.0.1:{behind}", True)
        place = proxy.listening(host, 0)
        running = proxy.server(app, host, 0, *files)
        with serving(running, [place]) as port:
            for caller in callers:
                connection = http.client.HTTPSConnection(caller, port, context=trust, timeout=10)
                with contextlib.closing(connection):
                    connection.request("POST", CALL)
                    assert connection.getresponse().read() == b"reply"
