"""The only door to the outside: it lets the calls of nodes through to the SuperLink, nothing else.

A SuperLink answers everything on one port, and its control calls know no login: whoever reaches
them can run code at every site. So the SuperLink listens on this machine only, and this proxy
stands where nodes can reach it. It passes `POST /v1/fleet/NAME` on and refuses all the rest.
Whether a node is known is the SuperLink's to decide.
"""

import argparse
import asyncio
import ipaddress
import logging
import re
import resource
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import uvicorn

from foul.deploy.addresses import plain_host, with_port
from foul.deploy.callers import SpeakingCaller
from foul.errors import UserError

LOG = logging.getLogger("foul.proxy")
FLEET = re.compile(rb"/v1/fleet/[a-z]+(-[a-z]+)*")
"""The paths that nodes call; spelled out, so that no `..`, `%2e` or query gets past."""
BODY_LIMIT = 64 * 2**20
"""Bytes of one call. Flower cuts tensors into objects of 5 MiB."""
HEAD_LIMIT = 16 * 2**10
"""Bytes of a call's headers."""
DEADLINE = 300.0
"""Seconds that one call may take."""
CONNECTIONS = 512
"""Calls at the same time."""
FILES = 4096
"""Open files: two for each call, and one for each caller who has not spoken yet."""
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade host x-forwarded-for x-forwarded-proto forwarded".split()
)
"""Headers that concern one connection, or that would let a caller pretend to be another."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class FleetProxy:
    """An ASGI application in front of a SuperLink; bodies stream through in both directions."""

    def __init__(self, upstream: str, context: ssl.SSLContext | bool) -> None:
        self._upstream = upstream.rstrip("/")
        self._context = context

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        timeout = httpx.Timeout(DEADLINE, connect=5)
        async with httpx.AsyncClient(
            verify=self._context, limits=limits, timeout=timeout, trust_env=False
        ) as self._client:
            # Only what the node sent: a default would ask for compression in its name.
            self._client.headers.clear()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        path, caller = scope["raw_path"], (scope.get("client") or ("?",))[0]
        if scope["method"] != "POST" or scope["query_string"] or not FLEET.fullmatch(path):
            LOG.warning("refused %s: %s %r", caller, scope["method"], path[:80])
            await _answer(send, 404, "Only nodes are served here.")
            return
        if _declared(scope) > BODY_LIMIT:
            LOG.warning("refused %s: a body of %d bytes", caller, _declared(scope))
            await _answer(send, 413, "Too large.")
            return
        begun = Begun(send)
        try:
            async with asyncio.timeout(DEADLINE), self._passed_on(scope, receive, caller) as reply:
                await _relay(reply, begun)
        except TooLarge:
            await begun.fail(413, "Too large.")
        except Gone:
            pass
        except (httpx.HTTPError, TimeoutError, ssl.SSLError) as error:
            LOG.warning("the SuperLink did not answer %s: %r", path.decode(), error)
            await begun.fail(502, "The SuperLink does not answer.")

    @asynccontextmanager
    async def _passed_on(
        self, scope: Message, receive: Receive, caller: str
    ) -> AsyncIterator[httpx.Response]:
        """The call as the SuperLink gets it, and its reply."""
        headers = [(k, v) for k, v in scope["headers"] if k.lower() not in HOP_BY_HOP]
        headers.append((b"x-forwarded-for", caller.encode()))
        async with self._client.stream(
            "POST",
            self._upstream + scope["raw_path"].decode(),
            headers=headers,
            content=_body(receive),
        ) as reply:
            yield reply


class TooLarge(Exception):
    """A body without a declared length that went over the limit."""


class Gone(Exception):
    """The caller hung up."""


class Begun:
    """Remembers whether a reply has begun, after which no other status can be sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False

    async def __call__(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)

    async def fail(self, status: int, text: str) -> None:
        if self._has_begun:
            # uvicorn cuts the connection: the caller sees that the reply is not whole.
            raise ConnectionResetError(text)
        await _answer(self._send, status, text)


def _declared(scope: Message) -> int:
    lengths = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return int(lengths[0]) if lengths else 0


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    total, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        chunk = message.get("body", b"")
        more = message.get("more_body", False)
        total += len(chunk)
        if total > BODY_LIMIT:
            raise TooLarge
        yield chunk


async def _relay(reply: httpx.Response, send: Send) -> None:
    headers = [(k.lower(), v) for k, v in reply.headers.raw if k.lower() not in HOP_BY_HOP]
    await send({"type": "http.response.start", "status": reply.status_code, "headers": headers})
    # As it came: compressed or not is between the node and the SuperLink.
    async for chunk in reply.aiter_raw():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body"})


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode() + b"\n"
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()),
        # What is left of the request is not read.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Whether this host name or address can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def upstream_trust(upstream: str, authority: Path | None) -> ssl.SSLContext | bool:
    """How the SuperLink is verified.

    Raises:
        UserError: it is on another machine and would be spoken to without TLS.
    """
    parts = urlsplit(upstream)
    if parts.scheme == "https":
        return ssl.create_default_context(cafile=str(authority) if authority else None)
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return True
    raise UserError(
        f"--upstream {upstream}: without TLS, only a SuperLink on this machine can be reached",
        "Use https:// and --upstream-ca.",
    )


def server(app: FleetProxy, host: str, port: int, certificate: Path, key: Path) -> uvicorn.Server:
    """The proxy as a server; it speaks nothing but TLS."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        ssl_certfile=str(certificate),
        ssl_keyfile=str(key),
        # On h11, because httptools has no limit for headers.
        http=SpeakingCaller,
        loop="foul.deploy.callers:GreetingLoop",
        ws="none",
        h11_max_incomplete_event_size=HEAD_LIMIT,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=3,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        log_level="warning",
    )
    return uvicorn.Server(config)


def listening(host: str, port: int) -> socket.socket:
    """Where nodes call; `::` stands for all addresses of this machine, IPv4 too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)


def _allow_files() -> None:
    """As many open files as `FILES`, if the system lets us; 1024 are usual."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main() -> None:
    """`python -m foul.deploy.proxy`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True, help="where nodes reach the proxy")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--certificate", required=True, type=Path)
    parser.add_argument("--key", required=True, type=Path)
    parser.add_argument("--upstream", required=True, help="https://127.0.0.1:PORT of the SuperLink")
    parser.add_argument("--upstream-ca", type=Path, help="the authority of its certificate")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        host = plain_host(given.host)
        trust = upstream_trust(given.upstream, given.upstream_ca)
    except UserError as error:
        parser.error(str(error))
    _allow_files()
    LOG.info("nodes: %s, SuperLink: %s", with_port(host, given.port), given.upstream)
    try:
        door = listening(host, given.port)
    except OSError as error:
        sys.exit(f"{with_port(host, given.port)} cannot be used ({error.strerror})")
    app = FleetProxy(given.upstream, trust)
    server(app, host, given.port, given.certificate, given.key).run([door])


if __name__ == "__main__":
    main()
