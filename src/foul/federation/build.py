"""From a configuration to a federation: in this process, or at the nodes of a Flower run."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.config.schema import Config
from foul.data import ClientData, DomainSet, build_clients, load_dataset
from foul.data.backdoor import poison_chosen
from foul.devices import CpuPlan, pick_device, plan_cpu
from foul.federation.engine import Engine
from foul.federation.federation import Federation
from foul.federation.inprocess import InProcessEngine
from foul.federation.ledger import Ledger
from foul.federation.messages import ClientInfo, Tensors
from foul.federation.observer import Observer
from foul.federation.processes import ProcessEngine
from foul.models import DisentangledNet, build_network, load_backbone


@dataclass(frozen=True)
class Setting:
    """A federation and what its server must know of the data: class names and image size."""

    federation: Federation
    classes: tuple[str, ...]
    image_size: int
    buffers: frozenset[str]
    """Names of the network's tensors that are not parameters."""
    initial: Tensors
    """The network before any training."""

    def facts(self) -> dict[str, Any]:
        """What a run folder notes of the data; JSON-like, so that it can be compared when read."""
        return {
            "classes": list(self.classes),
            "image_size": self.image_size,
            "clients": [
                {"id": client.id, "domain": client.domain, "samples": dict(client.samples)}
                for client in self.federation.clients
            ],
        }


def build(
    config: Config,
    observer: Observer | None = None,
    features: Path | None = None,
    without: Collection[str] = (),
    known: Sequence[ClientInfo] = (),
) -> Setting:
    """Load the data, share it out to clients and start an engine on this machine (with
    `engine=flower-sim`, Flower's); or, with `engine=flower`, meet the clients at their nodes.

    Args:
        features: the folder where clients on this machine keep the outputs of frozen parts.
        without: clients that nobody asks.
        known: the clients of the run so far; nodes that are away are still among them.
    """
    if config.engine == "flower":
        return _at_nodes(config, observer, without, known)
    observer = observer or Observer()
    plan = plan_cpu(config.workers, config.threads, pick_device(config.device))
    torch.set_num_threads(plan.threads)
    data, clients = load_clients(config, observer.decoded)
    net = initial_network(config, len(data.classes), data.image_size)
    initial, buffers = _state(net)
    engine = (
        _simulated(config, clients, features, plan)
        if config.engine == "flower-sim"
        else local_engine(local_worker(config, clients, net, features), plan)
    )
    federation = Federation(
        engine, config.federation, config.seed, observer=observer, without=without
    )
    return Setting(federation, data.classes, data.image_size, buffers, initial)


def load_clients(
    config: Config, decoded: Callable[[int, int], None] | None = None
) -> tuple[DomainSet, Sequence[ClientData]]:
    """The data of a configuration, and all its clients."""
    data: DomainSet = load_dataset(config.data, config.data_seed, decoded)
    clients = poison_chosen(
        build_clients(data, config.clients, config.seed),
        config.backdoor,
        len(data.classes),
        config.seed,
    )
    return data, clients


def local_worker(
    config: Config, clients: Sequence[ClientData], net: DisentangledNet, features: Path | None
) -> Worker:
    """The worker of these clients on this machine."""
    store = FeatureStore(features) if features else None
    return Worker(clients, net, pick_device(config.device), features=store)


def _simulated(
    config: Config, clients: Sequence[ClientData], features: Path | None, plan: CpuPlan
) -> Engine:
    """The engine on Flower's simulation; its processes load the data themselves."""
    from foul.flower.connect import simulate

    return simulate(config, sorted(client.id for client in clients), features, plan.workers)


def _at_nodes(
    config: Config,
    observer: Observer | None,
    without: Collection[str],
    known: Sequence[ClientInfo],
) -> Setting:
    """The federation of the Flower run that this process serves."""
    from foul.flower.connect import connect

    engine = connect(config, [client for client in known if client.id not in without])
    initial, buffers = _state(initial_network(config, len(engine.classes), engine.image_size))
    federation = Federation(
        engine, config.federation, config.seed, observer=observer, without=without
    )
    return Setting(federation, engine.classes, engine.image_size, buffers, initial)


def _state(net: DisentangledNet) -> tuple[Tensors, frozenset[str]]:
    """Copies of a network's tensors, and the names of those that are not parameters."""
    initial = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    return initial, frozenset(initial) - {name for name, _ in net.named_parameters()}


@contextmanager
def opened(
    config: Config,
    observer: Observer | None = None,
    features: Path | None = None,
    setting: Setting | None = None,
    without: Collection[str] = (),
    known: Sequence[ClientInfo] = (),
) -> Iterator[Setting]:
    """A federation for a while: its processes end with it. One that is there already (`setting`)
    is used as it is, with an empty ledger, and stays."""
    if setting is not None:
        setting.federation.ledger = Ledger()
        yield setting
        return
    setting = build(config, observer, features=features, without=without, known=known)
    try:
        yield setting
    finally:
        setting.federation.engine.close()


def local_engine(worker: Worker, plan: CpuPlan) -> Engine:
    """The engine for this machine: this process, or one process per core."""
    if plan.workers == 1:
        return InProcessEngine(worker)
    return ProcessEngine(worker, plan.workers, plan.threads)


def initial_network(config: Config, classes: int, image_size: int) -> DisentangledNet:
    """The network before any training, with the user's backbone weights if there are any."""
    net = build_network(config.model, classes, image_size, config.seed)
    if config.model.weights is not None:
        load_backbone(net, config.model.weights)
    return net
