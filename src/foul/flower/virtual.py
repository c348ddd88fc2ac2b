"""A node of Flower's simulation: the ClientApp that serves whichever client a message is for.

Ray runs it in a few long-lived processes. Each loads the data and makes its network once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from foul.client.worker import Worker
from foul.config.schema import Config
from foul.devices import pick_device, plan_cpu
from foul.federation.build import initial_network, load_clients, local_worker
from foul.federation.codec import decode_request, decode_tensors, encode_reply, encode_tensors
from foul.federation.messages import Reply
from foul.flower.holdings import Holding
from foul.flower.parcel import WHO, Parcel
from foul.flower.wire import from_records, to_records


def virtual_app(config: Config, features: Path | None) -> ClientApp:
    """The app of all clients of a configuration; the node's `partition-id` says which one it is."""
    # Text, because it travels to Ray's processes and is the key of what they have made.
    text, place = config.model_dump_json(), str(features or "")
    app = ClientApp()

    @app.query()
    def answer(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        reply = _site(text, place).answer(number, from_records(message.content))
        return Message(to_records(reply), reply_to=message)

    return app


@dataclass(frozen=True)
class Site:
    """What one process of the simulation holds: all clients, and one live network for them."""

    holdings: Sequence[Holding]
    """In the order of their clients' ids."""
    worker: Worker

    def answer(self, number: int, parcel: Parcel) -> Parcel:
        """What the client of this number answers."""
        if json.loads(parcel.header)["task"] == WHO:
            holding = self.holdings[number]
            reply = Reply(holding.client.id, numbers=holding.facts())
        else:
            tensors = decode_tensors(parcel.tensors)
            reply = self.worker.perform(decode_request(parcel.header, tensors))
        return Parcel(encode_reply(reply), encode_tensors(reply.tensors))


def make_site(config: Config, features: Path | None) -> Site:
    """Load the data and make the network."""
    plan = plan_cpu(config.workers, config.threads, pick_device(config.device))
    torch.set_num_threads(plan.threads)
    data, clients = load_clients(config)
    net = initial_network(config, len(data.classes), data.image_size)
    holdings = [
        Holding(client, data.classes, data.image_size)
        for client in sorted(clients, key=lambda client: client.id)
    ]
    return Site(holdings, local_worker(config, clients, net, features))


@lru_cache(maxsize=1)
def _site(config: str, features: str) -> Site:
    """The site of this process, made when its first message comes."""
    return make_site(Config.model_validate_json(config), Path(features) if features else None)
