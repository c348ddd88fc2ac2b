"""The client side: holds data and one live network, performs named tasks."""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import torch

from foul.client.adapt import adapt, keep, survey
from foul.client.angle import angle
from foul.client.channels import channels
from foul.client.context import Task, TaskContext
from foul.client.divergence import divergence
from foul.client.evaluate import evaluate
from foul.client.features import FeatureStore
from foul.client.flops import FlopMeter
from foul.client.freeze import freeze
from foul.client.inputs import inputs
from foul.client.learn import learn
from foul.client.linear_probe import moments, probed
from foul.client.outputs import outputs
from foul.client.pictures import latents, reconstruct
from foul.client.radii import probe
from foul.client.train import train
from foul.client.triggered import triggered
from foul.client.unlearn import unlearn
from foul.config.schema import ModelConfig
from foul.data.clients import ClientData
from foul.federation.messages import ClientInfo, Numbers, Reply, Request, Tensors
from foul.models import DisentangledNet

TASKS: Mapping[str, Task] = {
    "learn": learn,
    "evaluate": evaluate,
    "freeze": freeze,
    "inputs": inputs,
    "unlearn": unlearn,
    "train": train,
    "channels": channels,
    "keep": keep,
    "survey": survey,
    "adapt": adapt,
    "probe": probe,
    "outputs": outputs,
    "divergence": divergence,
    "angle": angle,
    "reconstruct": reconstruct,
    "latents": latents,
    "moments": moments,
    "probed": probed,
    "triggered": triggered,
}
"""Every task a server can ask for, by name."""


class Worker:
    """Performs tasks for the clients whose data it holds, one at a time.

    There is one live network for all clients: a task begins by loading what the server sent,
    so memory does not grow with the number of clients.
    """

    def __init__(
        self,
        clients: Sequence[ClientData],
        net: DisentangledNet,
        device: torch.device | None = None,
        tasks: Mapping[str, Task] = TASKS,
        features: FeatureStore | None = None,
    ) -> None:
        self._data = {client.id: client for client in sorted(clients, key=lambda c: c.id)}
        self._device = device or torch.device("cpu")
        # Convolutions on CPUs and GPUs are fastest when channels are innermost.
        self._net = net.to(self._device)
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._tasks = tasks
        # A name nobody else has; the folder is made when the first feature is kept.
        unnamed = Path(tempfile.gettempdir()) / f"foul-{uuid4().hex}"
        self._features = features or FeatureStore(unnamed)
        # A meter for each network: steps of equal shape cost the same only on the same network.
        self._networks = {"": (self._net, FlopMeter())}

    @property
    def clients(self) -> list[ClientInfo]:
        """What the server may know of the clients here."""
        return [client_info(client) for client in self._data.values()]

    def perform(self, request: Request) -> Reply:
        """The reply to this request; a failing task becomes a reply that says why."""
        start, flops = time.perf_counter(), self._flops()
        tensors: Tensors = {}
        numbers: Numbers = {}
        problem = ""
        try:
            tensors, numbers = self._task(request)(self._context(request))
        except Exception as error:
            # One client's failure is a fact about that client, not the end of the federation.
            problem = f"{type(error).__name__}: {error}"
        # What a failed task has spent is spent all the same.
        spent = self._flops() - flops
        return Reply(request.client, tensors, numbers, spent, time.perf_counter() - start, problem)

    def _flops(self) -> int:
        return sum(meter.total for _, meter in self._networks.values())

    def _network(self, settings: Numbers) -> tuple[DisentangledNet, FlopMeter]:
        """The live network, or one of another make if the settings describe a `model`."""
        make = json.dumps(settings["model"], sort_keys=True) if "model" in settings else ""
        if make not in self._networks:
            config = ModelConfig.model_validate(settings["model"])
            net = DisentangledNet(config, self._net.classes, self._net.image_size)
            net.to(self._device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self._networks[make] = (net, FlopMeter())
        return self._networks[make]

    def _task(self, request: Request) -> Task:
        if request.task not in self._tasks:
            raise LookupError(f"no task is called '{request.task}'")
        return self._tasks[request.task]

    def _context(self, request: Request) -> TaskContext:
        if request.client not in self._data:
            raise LookupError(f"no client is called '{request.client}'")
        net, meter = self._network(request.settings)
        return TaskContext(
            self._data[request.client],
            net,
            self._device,
            meter,
            self._features,
            request.round,
            request.tensors,
            request.settings,
        )


def client_info(client: ClientData) -> ClientInfo:
    """What the server may know of a client."""
    splits = {"train": client.train, "validation": client.validation, "test": client.test}
    return ClientInfo(client.id, client.domain, {name: len(s) for name, s in splits.items()})
