"""Another split of the same samples: for shadow models, which must differ in what they saw."""

import torch
from torch import Tensor

from foul.data.domains import Domain, Samples
from foul.seeds import torch_generator


def redealt(domain: Domain, share: float, seed: int) -> Domain:
    """The domain with this share of all its samples as training data, drawn anew by the seed.

    A sample's place in the pool (`Samples.index`) is the same for every seed.
    """
    pool = _pooled(domain)
    order = torch.randperm(len(pool), generator=_generator(seed, domain.name))
    cut = min(max(1, round(share * len(pool))), len(pool) - 1)
    return Domain(domain.name, _subset(pool, order[:cut]), _subset(pool, order[cut:]))


def _pooled(domain: Domain) -> Samples:
    train, test = domain.train, domain.test
    if train.images is test.images and train.labels is test.labels:
        return Samples(train.images, train.labels, torch.cat([train.index, test.index]).sort()[0])
    images = torch.cat([part.images[part.index] for part in (train, test)])
    return Samples.of(images, torch.cat([train.targets, test.targets]))


def _subset(pool: Samples, rows: Tensor) -> Samples:
    return pool.subset(rows.sort()[0])


def _generator(seed: int, domain: str) -> torch.Generator:
    return torch_generator(seed, "data/redeal", client=domain)
