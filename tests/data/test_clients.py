from dataclasses import replace

import pytest
import torch

from foul.config.schema import ClientsConfig, DataConfig
from foul.data import ClientData, DomainSet, build_clients, load_dataset
from foul.errors import UserError

PARTITIONS = ("iid", "dirichlet", "uneven")


@pytest.fixture
def data() -> DomainSet:
    return load_dataset(DataConfig(name="synthetic", image_size=8), seed=0)


def config(**values: object) -> ClientsConfig:
    return ClientsConfig.model_validate({"per_domain": 4, **values})


def rows(client: ClientData) -> tuple[list[int], list[int], list[int]]:
    return (
        client.train.index.tolist(),
        client.validation.index.tolist(),
        client.test.index.tolist(),
    )


@pytest.mark.parametrize("partition", PARTITIONS)
def test_clients_partition_their_domain(data: DomainSet, partition: str) -> None:
    clients = build_clients(data, config(partition=partition), seed=1)
    assert [client.id for client in clients[:5]] == [
        *("north-0", "north-1", "north-2", "north-3"),
        "east-0",
    ]
    for domain in data.domains:
        own = [client for client in clients if client.domain == domain.name]
        held = torch.cat([torch.cat([c.train.index, c.validation.index]) for c in own])
        assert held.sort().values.equal(domain.train.index)
        tested = torch.cat([client.test.index for client in own])
        assert tested.sort().values.equal(domain.test.index)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_domain_is_shared_out_alike_whatever_the_others_do(
    data: DomainSet, partition: str
) -> None:
    settings = config(partition=partition)
    alone = replace(data, domains=(data.domains[2],))
    expected = {c.id: rows(c) for c in build_clients(data, settings, seed=1)}
    for client in build_clients(alone, settings, seed=1):
        assert rows(client) == expected[client.id]


def test_the_seed_decides(data: DomainSet) -> None:
    first, again, other = (
        [rows(client) for client in build_clients(data, config(), seed)] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.0, (15, 0)), (0.01, (14, 1)), (0.2, (12, 3)), (0.99, (1, 14))]
)
def test_validation_share(data: DomainSet, fraction: float, expected: tuple[int, int]) -> None:
    client = build_clients(data, config(validation_fraction=fraction), seed=0)[0]
    assert (len(client.train), len(client.validation)) == expected


def test_a_client_with_one_sample_trains_on_it(data: DomainSet) -> None:
    small = replace(data.domains[0], train=data.domains[0].train.subset(range(4)))
    for client in build_clients(replace(data, domains=(small,)), config(), seed=0):
        assert (len(client.train), len(client.validation)) == (1, 0)


def test_too_few_images_name_the_domain(data: DomainSet) -> None:
    with pytest.raises(UserError, match=r"Domain 'north' has 60 images.*61 clients"):
        build_clients(data, config(per_domain=61), seed=0)
    with pytest.raises(UserError, match=r"test set of domain 'north' has 24 images"):
        build_clients(data, config(per_domain=25), seed=0)


def test_domains_whose_clients_would_share_names_are_refused(data: DomainSet) -> None:
    twins = tuple(replace(data.domains[0], name=name) for name in ("Real World", "real_world"))
    with pytest.raises(UserError, match=r"'Real World' and 'real_world'.*same names"):
        build_clients(replace(data, domains=twins), config(), seed=0)
