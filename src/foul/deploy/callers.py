"""Callers who do not speak: they take nobody's place, and are hung up on."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SILENCE = 10.0
"""Seconds in which a caller must have greeted (TLS), and then must have said what it wants."""


class SpeakingCaller(H11Protocol):
    """A connection on which the head of a call must be whole `SILENCE` seconds after the
    connection was made, or after its first byte came.

    Only while it has a call does it count among the connections that the server takes at the same
    time. How long a call may take is the application's to say; how long it may be idle between
    calls, the server's (`timeout_keep_alive`).
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.connections.discard(self)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._has_call:
            self.connections.add(self)
            self._wait_no_longer()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The next call may have been sent already.
        if not self._has_call:
            self.connections.discard(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    @property
    def _has_call(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(SILENCE, self.transport.abort)

    def _wait_no_longer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class GreetingLoop(asyncio.SelectorEventLoop):
    """An event loop whose TLS servers do not wait longer for a greeting; asyncio waits a minute."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        return await super().create_server(*arguments, ssl_handshake_timeout=SILENCE, **options)
