"""A grid without a network: nodes are objects, time passes when somebody sleeps."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from flwr.app import Error, Message, RecordDict
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError

from foul.client.worker import Worker
from foul.config.schema import FlowerConfig, ModelConfig
from foul.data import ClientData
from foul.federation.codec import decode_request, decode_tensors, encode_reply, encode_tensors
from foul.federation.messages import ClientInfo, Reply
from foul.flower.engine import FlowerEngine
from foul.flower.holdings import Holding
from foul.flower.parcel import WHO, Parcel
from foul.flower.post import Post
from foul.flower.wire import from_records, to_records

Answer = Callable[[Parcel], Parcel | RecordDict | Error | None]


def encoded(reply: Reply) -> Parcel:
    return Parcel(encode_reply(reply), encode_tensors(reply.tensors))


@dataclass
class FakeNode:
    """A node that serves one client with a worker in this process."""

    id: int
    name: str
    worker: Worker
    holding: Holding
    delay: float = 0.0
    says: dict[str, Any] = field(default_factory=dict)
    """Facts about itself that are not true."""
    answer: Answer | None = None
    """What it does instead of its tasks."""
    asked: list[str] = field(default_factory=list)

    def __call__(self, parcel: Parcel) -> Parcel | RecordDict | Error | None:
        task = json.loads(parcel.header)["task"]
        self.asked.append(task)
        if task == WHO:
            facts = self.holding.facts() | self.says
            return encoded(Reply(facts["client"], numbers=facts))
        if self.answer:
            return self.answer(parcel)
        request = decode_request(parcel.header, decode_tensors(parcel.tensors))
        return encoded(self.worker.perform(request))


class FakeGrid:
    """What the engine uses of Flower's Grid."""

    def __init__(self, nodes: Iterable[FakeNode]) -> None:
        self.online = {node.id: node for node in nodes}
        self.now = 0.0
        self.sent: list[Message] = []
        self.loses = 0
        """How many of the next pushes fail half-way, as when a SuperLink is killed in them."""
        self._waiting: dict[str, tuple[float, Message]] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def get_nodes(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=n.id, name=n.name) for n in self.online.values()]

    def push_messages(self, messages: list[Message]) -> list[str]:
        if self.loses:
            self.loses -= 1
            self.sent += messages
            raise ObjectPushError("0f", 1, "a session")
        return [self._push(message) for message in messages]

    def _push(self, message: Message) -> str:
        node = self.online.get(message.metadata.dst_node_id)
        if node is None:
            return ""
        self.sent.append(message)
        number = uuid4().hex
        content = node(from_records(message.content))
        if content is not None:
            reply = to_records(content) if isinstance(content, Parcel) else content
            self._waiting[number] = (self.now + node.delay, Message(reply, reply_to=message))
        return number

    def pull_messages(self, numbers: list[str]) -> list[Message]:
        ready = [n for n in numbers if n in self._waiting and self._waiting[n][0] <= self.now]
        return [self._waiting.pop(number)[1] for number in ready]


def nodes_of(clients: Iterable[ClientData], make_worker: Callable[..., Worker]) -> list[FakeNode]:
    """One node for each client, registered under its name."""
    return [
        FakeNode(
            100 + place, client.id, make_worker([client]), Holding(client, ("a", "b", "c"), 16)
        )
        for place, client in enumerate(clients)
    ]


def engine_on(
    grid: FakeGrid,
    known: Iterable[ClientInfo] = (),
    model: ModelConfig | None = None,
    **settings: object,
) -> FlowerEngine:
    """The engine on this grid; keywords change `flower.*`."""
    config = FlowerConfig.model_validate({"wait": 5, "deadline": 20, **settings})
    model = model or ModelConfig()
    post = Post(grid, model.model_dump_json(), config.largest_reply, grid.clock, grid.sleep)  # type: ignore[arg-type]
    return FlowerEngine(grid, config, model, list(known), post)  # type: ignore[arg-type]
