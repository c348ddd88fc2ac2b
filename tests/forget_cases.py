"""Requests to forget, for a federation of milliseconds whose replies can be meddled with."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from factories import MakeNet, snapshot
from small_runs import small_config

from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.config.schema import FederationConfig
from foul.data import ClientData, Samples
from foul.federation.federation import Federation
from foul.federation.inprocess import InProcessEngine
from foul.federation.messages import Reply, Request, Tensors
from foul.unlearning import Case, ForgetRequest
from foul.unlearning.method import LearnedScores

Meddle = Callable[[Request, Reply], Reply]
MakeCase = Callable[..., Case]


class Meddling(InProcessEngine):
    """Keeps what crossed the border; `meddle` changes replies on their way."""

    def __init__(self, worker: Worker, meddle: Meddle | None = None) -> None:
        super().__init__(worker)
        self.crossed: list[tuple[Request, Reply]] = []
        self.meddle = meddle or (lambda _, reply: reply)

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            reply = self.meddle(request, self._worker.perform(request))
            self.crossed.append((request, reply))
            yield reply

    def of_task(self, task: str) -> list[tuple[Request, Reply]]:
        return [pair for pair in self.crossed if pair[0].task == task]


def engine_of(case: Case) -> Meddling:
    assert isinstance(case.federation.engine, Meddling)
    return case.federation.engine


def make_case(
    make_net: MakeNet,
    clients: Sequence[ClientData],
    store: Path,
    forget: str = "domain:east",
    *,
    norm: str = "group",
    meddle: Meddle | None = None,
    federation: FederationConfig | None = None,
    deltas: Mapping[str, Tensors] | None = None,
    **changes: object,
) -> Case:
    """A request to a "learned" network whose running statistics are not the initial ones."""
    net = make_net(seed=1, norm=norm)
    initial = snapshot(make_net(seed=0, norm=norm))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        net(torch.randn(64, 3, 16, 16, generator=generator))
    worker = Worker(clients, make_net(seed=0, norm=norm), features=FeatureStore(store))
    engine = Meddling(worker, meddle)
    config = small_config(model__norm=norm, learning__rounds=2, **changes)
    return Case(
        Federation(engine, federation or FederationConfig(), 0),
        config,
        ForgetRequest.parse(forget, engine.clients),
        snapshot(net),
        2,
        initial,
        frozenset(initial) - {name for name, _ in net.named_parameters()},
        net.classes,
        net.image_size,
        deltas or {},
        scores=LearnedScores({client.id: 1.0 for client in clients}),
    )


def repainted(clients: Sequence[ClientData], domain: str) -> list[ClientData]:
    """The same clients, but all pixels of this domain are others."""

    def negative(samples: Samples) -> Samples:
        return replace(samples, images=255 - samples.images)

    def other(client: ClientData) -> ClientData:
        return replace(
            client,
            train=negative(client.train),
            validation=negative(client.validation),
            test=negative(client.test),
        )

    return [other(client) if client.domain == domain else client for client in clients]


def gone(domain: str, task: str = "unlearn") -> Meddle:
    """The clients of this domain do not answer this task."""

    def meddle(request: Request, reply: Reply) -> Reply:
        if request.task == task and request.client.startswith(domain):
            return Reply(request.client, error="gone")
        return reply

    return meddle


def scope_of(tensors: Tensors, *parts: str) -> Tensors:
    return {name: t for name, t in tensors.items() if name.split(".")[0] in parts}
