"""The engine on a Flower grid: requests become messages, messages become replies."""

import json
from collections.abc import Iterable, Iterator, Sequence

from flwr.serverapp import Grid

from foul.config.schema import FlowerConfig, ModelConfig
from foul.federation.messages import ClientInfo, Reply, Request
from foul.flower.post import GRACE, Post
from foul.flower.roster import Roster


def network_make(model: ModelConfig) -> str:
    """What nodes must know of a network to build it; its tensors come with every task."""
    return json.dumps(model.model_dump(mode="json", exclude={"weights"}), sort_keys=True)


class FlowerEngine:
    """Runs requests on the SuperNodes of a federation.

    All requests go out at once. Replies are fetched one by one, in the order of the requests, so
    the server holds one of them at a time; those that came early wait at the SuperLink.
    """

    def __init__(
        self,
        grid: Grid,
        config: FlowerConfig,
        model: ModelConfig,
        known: Sequence[ClientInfo] = (),
        post: Post | None = None,
    ) -> None:
        """Find the federation's nodes.

        Args:
            grid: Flower's connection to them.
            config: deadlines, and whom to wait for.
            model: the network that tasks work on.
            known: the clients of the run so far: those who are away are still its clients.

        Raises:
            UserError: clients are missing, or contradict each other.
        """
        self._post = post or Post(grid, network_make(model), config.largest_reply)
        self._deadline = config.deadline
        self._roster = Roster(self._post, config, known)

    @property
    def clients(self) -> Sequence[ClientInfo]:
        return self._roster.clients

    @property
    def classes(self) -> tuple[str, ...]:
        return self._roster.classes

    @property
    def image_size(self) -> int:
        return self._roster.image_size

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        asked = list(requests)
        nodes = self._roster.nodes([request.client for request in asked])
        until = self._post.clock() + self._deadline + GRACE
        to = [(node, r) for r in asked if isinstance(node := nodes[r.client], int)]
        sent = iter(self._post.send(to, self._deadline))
        for request in asked:
            node = nodes[request.client]
            if isinstance(node, int):
                yield self._post.fetch(request, next(sent), until)
            else:
                yield Reply(request.client, error=node)

    def close(self) -> None:
        """The grid belongs to Flower."""
