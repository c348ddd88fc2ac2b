"""The server: Python's own, one thread per request, for one person on one machine."""

import errno
import socket
import socketserver
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from foul.erasure.dashboard.access import LOOPBACK, Access
from foul.erasure.dashboard.federation import Federation, federations
from foul.erasure.dashboard.site import Response, Site, message, redirect
from foul.errors import UserError
from foul.version import __version__

LARGEST_FORM = 20_000
"""Bytes; a reason is a sentence."""
HEADERS = {
    # Charts carry their colours in attributes. There are no scripts, so none is allowed.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not `no-referrer`: with it, browsers hide the origin of forms too.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Dashboard(ThreadingHTTPServer):
    """Serves the pages until it is closed."""

    daemon_threads = True

    def __init__(self, own: Sequence[Federation], host: str, port: int) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)
        self.access = Access(host, self.server_address[1])
        self.site = Site(own, self.access.form_token)

    @property
    def url(self) -> str:
        """The address with the token: whoever has it can look and file requests."""
        host, port = str(self.server_address[0]), self.server_address[1]
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}/?token={self.access.token}"

    def server_bind(self) -> None:
        # HTTPServer would look its own name up, which takes seconds where there is no network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "foul", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is no error; the rest is one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"foul: a page failed ({type(error).__name__}: {error})", file=sys.stderr)


def open_dashboard(
    runs: Sequence[Path], host: str = "127.0.0.1", port: int = 8420, remote: bool = False
) -> Dashboard:
    """A dashboard that listens; call its `serve_forever`.

    Args:
        runs: run folders with an erasure ledger.
        host: the address to listen at.
        port: 0 for any that is free.
        remote: whether other machines may reach it.

    Raises:
        UserError: a run without a ledger, an address for others that was not asked for, or a
            port that is taken.
    """
    if host not in LOOPBACK and not remote:
        raise UserError(
            f"At {host} other machines could reach this page, and nothing they send is encrypted",
            "Use a tunnel (ssh -L), or say --allow-remote if that is what you want.",
        )
    own = federations(runs)
    try:
        return Dashboard(own, host, port)
    except OSError as error:
        raise _not_listening(host, port, error) from error


def _not_listening(host: str, port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        free = next((n for n in range(port + 1, port + 20) if _free(host, n)), 0)
        return UserError(f"Port {port} is taken by another program", f"Try --port {free}.")
    if error.errno == errno.EACCES:
        return UserError(f"Port {port} is not for everybody", "Choose one above 1023.")
    return UserError(
        f"Cannot listen at {host} ({error.strerror or error})", "Leave --host out, or correct it."
    )


def _free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        return port < 65536 and probe.connect_ex((host, port)) != 0


class _Handler(BaseHTTPRequestHandler):
    """One request: first who asks, then what for."""

    server: Dashboard
    timeout = 20
    server_version = f"foul/{__version__}"
    sys_version = ""

    def do_GET(self) -> None:
        self._send(self._guarded(self._get))

    def do_HEAD(self) -> None:
        self._send(self._guarded(self._get))

    def do_POST(self) -> None:
        self._send(self._guarded(self._post))

    def _guarded(self, answer: Callable[[], Response]) -> Response:
        if not self.server.access.answers_to(self.headers.get("Host", "")):
            text = "This server does not go by that name. Use the address that it printed."
            return message(HTTPStatus.MISDIRECTED_REQUEST, text)
        try:
            return answer()
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            print(f"foul: a page failed ({type(error).__name__}: {error})", file=sys.stderr)
            return message(HTTPStatus.INTERNAL_SERVER_ERROR, "This page could not be made.")

    def _get(self) -> Response:
        address = urlsplit(self.path)
        tokens = parse_qs(address.query).get("token")
        if tokens:
            return self._enter(tokens[0], address.path)
        if not self._known():
            return _closed()
        return self.server.site.get(address.path)

    def _enter(self, token: str, path: str) -> Response:
        """A cookie for the token; the address that goes on has no token in it."""
        if not self.server.access.admits(token):
            return _closed()
        # Two slashes would lead to another host.
        gone_on = redirect("/" + path.lstrip("/\\"))
        cookie = {"Set-Cookie": self.server.access.new_cookie()}
        return Response(gone_on.body, gone_on.status, headers={**gone_on.headers, **cookie})

    def _post(self) -> Response:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST_FORM:
            self.close_connection = True
            return message(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is more than a form holds.")
        text = self.rfile.read(int(length)).decode(errors="replace")
        form = {name: values[0] for name, values in parse_qs(text).items()}
        if not self._known():
            return _closed()
        if not self.server.access.own_form(dict(self.headers), form.get("form_token", "")):
            return message(
                HTTPStatus.FORBIDDEN, "That form is not one of this page. Load it again and retry."
            )
        return self.server.site.post(urlsplit(self.path).path, form)

    def _known(self) -> bool:
        return self.server.access.knows(self.headers.get("Cookie", ""))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in {**HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What Python's server says by itself, such as to a verb it does not know."""
        self.send_response_only(code)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: the first address holds the token."""


def _closed() -> Response:
    return message(
        HTTPStatus.UNAUTHORIZED,
        "Open the address that `foul erase serve` printed. It ends with a token.",
    )
