"""Who is who: which node serves which client, and what it says of itself."""

from collections.abc import Iterable, Mapping, Sequence

from foul.config.schema import FlowerConfig
from foul.errors import UserError
from foul.federation.messages import ClientInfo, Request
from foul.flower.checks import NodeFacts, read_facts
from foul.flower.parcel import WHO
from foul.flower.post import Post


class Roster:
    """The clients of a run, and the nodes that serve them now.

    A client is named by the operator who registered its node's key (`flwr supernode register KEY
    --name CLIENT`): that name survives restarts and cannot be claimed by another node. Nodes
    without a registered name may name themselves only if `flower.trust_names` says so.

    Who the clients are is settled at the start; a client that is away later is still one.
    """

    def __init__(self, post: Post, config: FlowerConfig, known: Sequence[ClientInfo] = ()) -> None:
        self._post, self._config = post, config
        self._facts: dict[int, NodeFacts] = {}
        self._refused: dict[str, str] = {}
        self._infos = {client.id: client for client in known}
        self._wait()
        if not known:
            self._infos = {facts.client: facts.info for facts in self._facts.values()}
        self._require_agreement()

    @property
    def clients(self) -> list[ClientInfo]:
        return [self._infos[id] for id in sorted(self._infos)]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._any.classes)

    @property
    def image_size(self) -> int:
        return self._any.image_size

    @property
    def _any(self) -> NodeFacts:
        return next(iter(self._facts.values()))

    def nodes(self, clients: Iterable[str]) -> Mapping[str, int | str]:
        """The node of each client, or why there is none."""
        wanted = list(clients)
        present = self._present(wanted)
        return {client: self._node(client, present) for client in wanted}

    def _node(self, client: str, present: Mapping[str, int]) -> int | str:
        if client not in present:
            return self._refused.get(client, "not connected")
        own = self._facts[present[client]].info
        if client in self._infos and own != self._infos[client]:
            return "its data has changed since the run began"
        return present[client]

    def _wait(self) -> None:
        """Until everybody who is expected is there, or the time is over."""
        # The named ones are a new run's; a run that goes on may have lost some to an erasure.
        expected = tuple(self._infos) or self._config.clients
        until = self._post.clock() + self._config.wait
        while True:
            present = self._present(expected)
            enough = set(expected) <= set(present) if expected else self._enough(present)
            if enough:
                return
            if self._post.clock() > until:
                break
            self._post.sleep(1.0)
        if self._infos and present:
            # A run that goes on: the quorum decides about those who are away.
            return
        self._refuse_start(expected, present)

    def _enough(self, present: Mapping[str, int]) -> bool:
        return len(present) >= self._config.min_clients

    def _refuse_start(self, expected: Sequence[str], present: Mapping[str, int]) -> None:
        missing = sorted(set(expected) - set(present))
        lack = (
            f"{', '.join(missing)} did not connect"
            if missing
            else f"{len(present)} clients are connected, {self._config.min_clients} are needed"
        )
        why = "".join(f"; {name}: {reason}" for name, reason in sorted(self._refused.items()))
        raise UserError(
            f"Within {self._config.wait:g} s, {lack}{why}",
            "Start their nodes (`foul node` and a SuperNode), or wait longer with flower.wait.",
        )

    def _present(self, wanted: Sequence[str] = ()) -> dict[str, int]:
        """The nodes that are online, by client. Those not met before are asked who they are, unless
        their registered name is of no interest."""
        online = {node.node_id: node.name for node in self._post.grid.get_nodes()}
        self._refused = {}
        unknown = {
            node: name
            for node, name in online.items()
            if node not in self._facts and (not wanted or not name or name in wanted)
        }
        self._ask(unknown)
        present: dict[str, int] = {}
        for node in online:
            if node not in self._facts:
                continue
            client = self._facts[node].client
            if client in present:
                self._refused[client] = "two nodes claim to be this client"
            present[client] = node
        return {c: node for c, node in present.items() if c not in self._refused}

    def _ask(self, nodes: Mapping[int, str]) -> None:
        """Ask nodes who they are; remember those whose answer can be believed."""
        asked = [
            (node, Request(name, WHO, 0, {}, {}))
            for node, name in nodes.items()
            if self._may_speak(node, name)
        ]
        until = self._post.clock() + self._post.asking
        ids = self._post.send(asked, self._post.asking)
        for (node, request), id in zip(asked, ids, strict=True):
            reply = self._post.fetch(request, id, until)
            label = request.client or f"node {node}"
            if reply.error:
                self._refused[label] = reply.error
                continue
            try:
                facts = read_facts(reply.numbers)
            except ValueError as error:
                self._refused[label] = str(error)
                continue
            if request.client and facts.client != request.client:
                self._refused[label] = f"registered as {request.client}, but says {facts.client}"
            else:
                self._facts[node] = facts

    def _may_speak(self, node: int, name: str) -> bool:
        if name or self._config.trust_names:
            return True
        self._refused[f"node {node}"] = (
            "it is not registered by name (flwr supernode register KEY.pub --name CLIENT); "
            "on one machine, flower.trust_names=true takes its own word"
        )
        return False

    def _require_agreement(self) -> None:
        """Every node has the same classes and image size."""
        first = self._any
        for facts in self._facts.values():
            for what in ("classes", "image_size"):
                one, other = getattr(first, what), getattr(facts, what)
                if one != other:
                    raise UserError(
                        f"Clients {first.client} and {facts.client} have different {what} "
                        f"({_listed(one)} and {_listed(other)})",
                        "Every node needs images of every class, in the same spelling, and the "
                        "same data.image_size.",
                    )


def _listed(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) < 200 else f"{text[:200]}..."
