"""Who may look: whoever has the address with the token, from this machine's own names for itself.

The token is in the address once; from then on a cookie speaks for the browser. The `Host` header
must be a name that this server is known by: a stranger's name that was made to lead here (DNS
rebinding) is refused. A form must come from a page of this very server.
"""

import secrets
import socket
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Access:
    """The secrets of one server, and the names it answers to."""

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        self.local = host in LOOPBACK
        self._names = LOOPBACK if self.local else LOOPBACK | {host, socket.gethostname()}
        self.token = secrets.token_urlsafe(24)
        self.form_token = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        # Cookies do not know of ports: two dashboards must not log each other out.
        self._cookie = f"foul-{port}"

    def admits(self, token: str) -> bool:
        """Whether this is the token."""
        return _same(token, self.token)

    def new_cookie(self) -> str:
        """What a browser gets for the token; no script and no other site can use it."""
        return f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, cookies: str) -> bool:
        """Whether a `Cookie` header holds what `new_cookie` gave."""
        try:
            found = SimpleCookie(cookies).get(self._cookie)
        except CookieError:
            return False
        return found is not None and _same(found.value, self._session)

    def answers_to(self, host: str) -> bool:
        """Whether a `Host` header names this server. An address that is no name cannot have been
        led astray, so a server for other machines accepts every one."""
        name, port = _split(host)
        if port != self.port:
            return False
        return name in self._names or (not self.local and _is_address(name))

    def own_form(self, headers: Mapping[str, str], token: str) -> bool:
        """Whether a form was sent from a page of this server."""
        own = f"http://{headers.get('Host', '')}"
        return headers.get("Origin") == own and _same(token, self.form_token)


def _same(told: str, secret: str) -> bool:
    """Compared in a time that does not tell where they differ."""
    return secrets.compare_digest(told.encode(errors="replace"), secret.encode())


def _split(host: str) -> tuple[str, int]:
    name, _, port = host.rpartition(":")
    if not port.isascii() or not port.isdigit():
        name, port = host, "80"
    return name.removeprefix("[").removesuffix("]").lower(), int(port)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
