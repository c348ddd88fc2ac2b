"""The default engine: all clients in this process, one live network for all of them."""

from collections.abc import Iterable, Iterator, Sequence

from foul.client.worker import Worker
from foul.federation.messages import ClientInfo, Reply, Request


class InProcessEngine:
    """Runs each request on the worker, one after the other."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def clients(self) -> Sequence[ClientInfo]:
        return self._worker.clients

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            yield self._worker.perform(request)

    def close(self) -> None:
        """Nothing to give back."""
