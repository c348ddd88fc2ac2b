"""From domains to clients: who holds which samples."""

from dataclasses import dataclass

import numpy as np
import torch

from foul.config.schema import ClientsConfig
from foul.data.domains import Domain, DomainSet, Samples
from foul.data.partition import dirichlet, iid, uneven
from foul.data.redeal import redealt
from foul.data.split import Rows
from foul.errors import UserError
from foul.names import slug
from foul.seeds import numpy_generator


@dataclass(frozen=True)
class ClientData:
    """What one client holds; nothing here ever leaves it.

    Attributes:
        id: its name, like 'sketch-0'.
        domain: the domain its samples come from.
        train: what it trains on.
        validation: its own samples that it keeps out of training.
        test: its shard of the domain's independent test set.
    """

    id: str
    domain: str
    train: Samples
    validation: Samples
    test: Samples


def build_clients(data: DomainSet, config: ClientsConfig, seed: int) -> tuple[ClientData, ...]:
    """Share each domain out among its clients.

    Each domain has its own random streams, so the clients of one domain stay the same
    whatever happens to the others.

    Raises:
        UserError: a domain has too few images for its clients, or two have the same name.
    """
    _require_different_names(data.domain_names)
    return tuple(client for domain in data.domains for client in _clients_of(domain, config, seed))


def _require_different_names(names: tuple[str, ...]) -> None:
    """Client ids are made of slugs, which can be equal where names differ in punctuation."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(slug(name), name)
        if other is not name:
            raise UserError(
                f"The clients of domains '{other}' and '{name}' would have the same names",
                "Rename one of the folders",
            )


def _clients_of(domain: Domain, config: ClientsConfig, seed: int) -> list[ClientData]:
    if config.redeal is not None:
        domain = redealt(domain, config.redeal, seed)
    labels = domain.train.targets.numpy()
    rng = numpy_generator(seed, "data/partition", client=domain.name)
    shares = _partition(labels, config, rng, f"Domain '{domain.name}'")
    tests = iid(
        domain.test.targets.numpy(),
        config.per_domain,
        numpy_generator(seed, "data/test-shards", client=domain.name),
        f"The test set of domain '{domain.name}'",
    )
    clients = []
    for number, (share, test) in enumerate(zip(shares, tests, strict=True)):
        name = f"{slug(domain.name)}-{number}"
        keep, hold = _hold_out(
            share, config.validation_fraction, numpy_generator(seed, "data/validation", client=name)
        )
        clients.append(
            ClientData(
                id=name,
                domain=domain.name,
                train=domain.train.subset(torch.from_numpy(keep)),
                validation=domain.train.subset(torch.from_numpy(hold)),
                test=domain.test.subset(torch.from_numpy(test)),
            )
        )
    return clients


def _partition(
    labels: Rows, config: ClientsConfig, rng: np.random.Generator, owner: str
) -> list[Rows]:
    if config.partition == "iid":
        return iid(labels, config.per_domain, rng, owner)
    skewed = {"dirichlet": dirichlet, "uneven": uneven}[config.partition]
    return skewed(labels, config.per_domain, config.alpha, rng, owner)


def _hold_out(share: Rows, fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Training and validation rows: at least one each, if there are two and any are wanted."""
    wanted = round(len(share) * fraction)
    count = min(max(wanted, 1), len(share) - 1) if fraction > 0 else 0
    shuffled = rng.permutation(share)
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])
