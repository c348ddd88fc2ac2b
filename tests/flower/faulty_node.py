"""A node that fails in another way in every round: `python faulty_node.py CONFIG CLIENT SOCKET`."""

import json
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from foul.client.context import TaskContext
from foul.client.features import FeatureStore
from foul.client.worker import TASKS, Worker
from foul.config import load_config
from foul.config.schema import ModelConfig
from foul.federation.messages import Numbers, Tensors
from foul.flower.holdings import share_of
from foul.flower.node import Node
from foul.flower.parcel import Parcel
from foul.models import DisentangledNet

HANGS, MISSHAPEN, GARBAGE, DIES = 1, 2, 3, 4
"""What it does in which round of learning; afterwards it works."""


def learn(context: TaskContext) -> tuple[Tensors, Numbers]:
    if context.round == HANGS:
        time.sleep(600)
    if context.round == DIES:
        os._exit(7)
    tensors, numbers = TASKS["learn"](context)
    if context.round == MISSHAPEN:
        name = next(iter(tensors))
        tensors = tensors | {name: torch.zeros(3)}
    return tensors, numbers


class FaultyNode(Node):
    """Answers with bytes of no meaning in one round."""

    def _perform(
        self, asker: Connection, parcel: Parcel, deadline: float
    ) -> tuple[Parcel | None, str]:
        asked = json.loads(parcel.header)
        if asked["task"] == "learn" and asked["round"] == GARBAGE:
            return Parcel(b"\xff\xfe nothing of sense", b"\x00" * 99), ""
        return super()._perform(asker, parcel, deadline)


def main(config: str, client: str, socket: str) -> None:
    holding = share_of(load_config(config), client)

    def make(model: ModelConfig) -> Worker:
        torch.set_num_threads(1)
        net = DisentangledNet(model, len(holding.classes), holding.image_size)
        features = FeatureStore(Path(f"{socket}.features"))
        return Worker([holding.client], net, tasks={**TASKS, "learn": learn}, features=features)

    with FaultyNode(holding, Path(socket), make) as node:
        print("ready", flush=True)
        node.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
