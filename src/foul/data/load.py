"""From a configuration to a data set."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from foul.config.schema import DataConfig
from foul.data.cache import Progress
from foul.data.colored_mnist import colored_mnist
from foul.data.digits import digits
from foul.data.domains import Domain, DomainSet
from foul.data.folder_set import chosen_domains, folder_set
from foul.data.known import known
from foul.data.split import stratified_sample
from foul.data.synthetic import synthetic
from foul.errors import UserError
from foul.names import canonical
from foul.seeds import numpy_generator

EMBEDDED: dict[str, Callable[[DataConfig, int], DomainSet]] = {
    "digits": lambda config, seed: digits(config.image_size),
    "colored-mnist": colored_mnist,
    "synthetic": lambda config, seed: synthetic(config.image_size, seed),
}


def load_dataset(config: DataConfig, seed: int, progress: Progress | None = None) -> DomainSet:
    """Load the configured data set, reduced to the configured domains and number of images.

    Args:
        config: which images.
        seed: for whatever is drawn at random; each domain has its own stream.
        progress: called with (done, total) while images are decoded into the cache.

    Raises:
        UserError: the name, a domain or the folder is wrong; the message says what to do.
        MachineError: the cache cannot be written.
    """
    entry = None if canonical(config.name) == "folder" else known(config.name)
    if entry is not None and entry.embedded:
        data = EMBEDDED[entry.name](config, seed)
    else:
        data = folder_set(config, entry, seed, progress)
    if config.domains:
        data = _select(data, config.domains)
    if config.max_per_domain is not None:
        limit = config.max_per_domain
        data = replace(data, domains=tuple(_limited(d, limit, seed) for d in data.domains))
    return data


def _select(data: DomainSet, wanted: tuple[str, ...]) -> DomainSet:
    names = chosen_domains(wanted, data.domain_names)
    by_name = {domain.name: domain for domain in data.domains}
    return replace(data, domains=tuple(by_name[name] for name in names))


def _limited(domain: Domain, limit: int, seed: int) -> Domain:
    """At most ``limit`` images, with the shares of classes and of the test part kept.

    Drawn after the split, so that no test image of the whole set is trained on in a small one.
    """
    first_test = len(domain.train)
    if first_test + len(domain.test) <= limit:
        return domain
    labels = torch.cat([domain.train.targets, domain.test.targets]).numpy()
    is_test = np.arange(len(labels)) >= first_test
    rng = numpy_generator(seed, "data/limit", client=domain.name)
    kept = stratified_sample(2 * labels + is_test, limit, rng)
    train, test = kept[kept < first_test], kept[kept >= first_test] - first_test
    if not len(train) or not len(test):
        raise UserError(
            f"data.max_per_domain={limit} leaves domain '{domain.name}' without images to"
            f" {'test with' if len(train) else 'train on'}",
            "Use a larger number",
        )
    return Domain(
        domain.name,
        domain.train.subset(torch.from_numpy(train)),
        domain.test.subset(torch.from_numpy(test)),
    )
