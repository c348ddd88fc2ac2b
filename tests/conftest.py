"""A federation of milliseconds: synthetic images, a tiny network, two clients per domain."""

from collections.abc import Sequence

import pytest
import torch
from factories import MakeNet, MakeWorker
from hypothesis import settings

from foul.client.worker import Worker
from foul.config.schema import ClientsConfig, DataConfig, ModelConfig
from foul.data import ClientData, DomainSet, build_clients, load_dataset
from foul.models import DisentangledNet, build_network

torch.set_num_threads(1)
# The first call of a torch function can take half a second, which says nothing about the code.
settings.register_profile("foul", deadline=None)
settings.load_profile("foul")


@pytest.fixture(scope="session")
def synthetic_set() -> DomainSet:
    return load_dataset(DataConfig(name="synthetic", image_size=16), seed=0)


@pytest.fixture(scope="session")
def tiny_clients(synthetic_set: DomainSet) -> tuple[ClientData, ...]:
    """Eight clients of four domains: 27 training, 3 validation and 12 test images each."""
    return build_clients(synthetic_set, ClientsConfig(per_domain=2), seed=0)


@pytest.fixture(scope="session")
def make_net() -> MakeNet:
    """Makes a tiny network for the synthetic set; keywords change its configuration."""

    def make(seed: int = 0, **values: object) -> DisentangledNet:
        small = {"backbone": "tiny", "k_channels": 4, "v_channels": 4, "decoder_channels": 8}
        return build_network(ModelConfig.model_validate(small | values), 3, 16, seed)

    return make


@pytest.fixture(scope="session")
def make_worker(make_net: MakeNet, tiny_clients: tuple[ClientData, ...]) -> MakeWorker:
    """Makes a worker with a fresh tiny network; keywords change the network's configuration."""

    def make(clients: Sequence[ClientData] | None = None, **values: object) -> Worker:
        return Worker(clients or tiny_clients, make_net(**values))

    return make
