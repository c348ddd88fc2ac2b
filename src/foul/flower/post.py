"""Messages to nodes and back, each within a deadline."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError

from foul.federation.codec import encode_request, encode_tensors
from foul.federation.messages import Reply, Request
from foul.flower.checks import read_reply
from foul.flower.parcel import Parcel
from foul.flower.wire import from_records, to_records

GRACE = 30.0
"""Seconds beyond a task's own deadline in which its answer may still arrive."""
POLL = 0.2
"""Seconds between two looks for a reply; Flower's own loop sleeps 3."""
PUSHES = 3
"""How often messages are handed to a SuperLink that loses them half-way."""


@dataclass(frozen=True)
class Post:
    """Sends requests to nodes and fetches their replies, each within a deadline."""

    grid: Grid
    model: str
    """The network's make as JSON: nodes build it when they first hear of it."""
    largest: int
    """Bytes that a reply may have."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asking: float = 60.0
    """Seconds a node has to say who it is."""

    def send(self, to: Sequence[tuple[int, Request]], deadline: float) -> list[str]:
        """The ids of the messages, in order; empty for one that Flower did not take."""
        parcels = _Parcels()
        envelope = json.dumps({"model": json.loads(self.model), "deadline": deadline}).encode()
        contents = [(node, r, to_records(parcels.of(r, envelope))) for node, r in to]

        def messages() -> list[Message]:
            ttl = deadline + 2 * GRACE
            return [Message(c, n, "query", ttl=ttl, group_id=str(r.round)) for n, r, c in contents]

        ids = self._push(messages) if to else []
        return ids + [""] * (len(to) - len(ids))

    def _push(self, messages: Callable[[], list[Message]]) -> list[str]:
        """Their ids. A SuperLink that is killed between storing a part of a message and saying so
        refuses that part when Flower repeats it: then all go again, as new messages."""
        for _ in range(PUSHES):
            try:
                return [id or "" for id in self.grid.push_messages(messages())]
            except ObjectPushError:
                self.sleep(POLL)
        return []

    def fetch(self, request: Request, id: str, until: float) -> Reply:
        """The reply to this request, or why there is none."""
        client = request.client
        if not id:
            return Reply(client, error="Flower did not take the message (node gone?)")
        while True:
            for message in self.grid.pull_messages([id]):
                return self._read(request, message)
            if self.clock() > until:
                return Reply(client, error="no reply within the deadline")
            self.sleep(POLL)

    def _read(self, request: Request, message: Message) -> Reply:
        client = request.client
        if message.has_error():
            reason = str(message.error.reason)[:300]
            return Reply(client, error=f"Flower error {message.error.code}: {reason}")
        try:
            parcel = from_records(message.content)
        except ValueError as error:
            return Reply(client, error=f"its reply is garbage ({error})")
        return read_reply(request, parcel, self.largest)


class _Parcels:
    """Requests as parcels; their tensors are encoded once, as all clients are sent the same."""

    def __init__(self) -> None:
        self._last: object = None
        self._data = b""

    def of(self, request: Request, envelope: bytes) -> Parcel:
        if request.tensors is not self._last:
            self._last, self._data = request.tensors, encode_tensors(request.tensors)
        return Parcel(encode_request(request), self._data, envelope)
