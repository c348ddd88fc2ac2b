"""The narrow interface between server-side code and clients."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from foul.federation.messages import ClientInfo, Reply, Request


class Engine(Protocol):
    """Brings requests to clients and their replies back.

    Everything a method does with clients goes through here, so whatever implements it (one
    process, Flower) runs every method, and the server never touches client data.
    """

    @property
    def clients(self) -> Sequence[ClientInfo]:
        """All clients, sorted by id."""

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply per request, in the order of the requests.

        Replies are produced as they are consumed, so that a server that folds each reply into a
        sum holds one of them at a time. A client that fails answers with `error`, never raises.
        """

    def close(self) -> None:
        """Give back what the engine holds; nothing can be run afterwards."""
