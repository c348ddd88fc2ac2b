"""A node in a process of its own, with tasks that misbehave, and how to ask it."""

import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foul.client.context import TaskContext
from foul.client.worker import TASKS, Worker
from foul.config.schema import ModelConfig
from foul.data import ClientData
from foul.federation.codec import decode_reply, decode_tensors, encode_request, encode_tensors
from foul.federation.messages import Numbers, Reply, Request, Tensors
from foul.flower.client_app import ask
from foul.flower.holdings import Holding
from foul.flower.node import Node
from foul.flower.parcel import Parcel
from foul.models import DisentangledNet

TINY = {"backbone": "tiny", "k_channels": 4, "v_channels": 4, "decoder_channels": 8}
Outcome = tuple[Tensors, Numbers]


def echo(context: TaskContext) -> Outcome:
    size = sum(parameter.numel() for parameter in context.net.parameters())
    return dict(context.tensors), {"pid": os.getpid(), "size": size}


def hang(context: TaskContext) -> Outcome:
    time.sleep(60)
    return {}, {}


def die(context: TaskContext) -> Outcome:
    os._exit(7)


def fail(context: TaskContext) -> Outcome:
    raise ValueError("no luck")


MISBEHAVING = {**TASKS, "echo": echo, "hang": hang, "die": die, "fail": fail}


def listens(path: Path) -> bool:
    """Whether somebody takes calls there: the file is there a little earlier."""
    with socket.socket(socket.AF_UNIX) as trial:
        return trial.connect_ex(str(path)) == 0


@contextmanager
def running_node(client: ClientData) -> Iterator[Path]:
    """The socket of a node that serves this client."""
    holding = Holding(client, ("a", "b", "c"), 16)

    def make(model: ModelConfig) -> Worker:
        return Worker([client], DisentangledNet(model, 3, 16), tasks=MISBEHAVING)

    def serve(path: Path) -> None:
        with Node(holding, path, make) as node:
            node.serve()

    # Not below pytest's folder: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="foul-") as folder:
        path = Path(folder, "node.sock")
        process = multiprocessing.get_context("fork").Process(target=serve, args=(path,))
        process.start()
        try:
            while not listens(path):
                time.sleep(0.01)
                assert process.is_alive()
            yield path
        finally:
            # Its task process must end by itself then.
            process.kill()
            process.join()


def parcel_of(request: Request, deadline: float = 20.0, **model: object) -> Parcel:
    """A request as it reaches a node."""
    envelope = json.dumps({"model": TINY | model, "deadline": deadline}).encode()
    return Parcel(encode_request(request), encode_tensors(request.tensors), envelope)


def ask_node(path: Path, request: Request, deadline: float = 20.0, **model: object) -> Reply:
    """What the node at this socket answers."""
    answer = ask("asker", str(path), parcel_of(request, deadline, **model))
    return decode_reply(answer.header, decode_tensors(answer.tensors))
