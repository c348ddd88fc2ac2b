"""What a data set is: domains, each with training and test samples of the same classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Samples:
    """Labelled images as rows of a (possibly memory-mapped, shared) uint8 array.

    Attributes:
        images: uint8 ``[M, H, W, 3]``, channels last on disk and in memory, because that is
            what convolutions on CPUs and GPUs like best.
        labels: int64 ``[M]``.
        index: int64 ``[N]``, the rows of ``images`` and ``labels`` that belong to this set.
    """

    images: Tensor
    labels: Tensor
    index: Tensor

    @classmethod
    def of(cls, images: Tensor, labels: Tensor) -> "Samples":
        """All rows of these arrays."""
        return cls(images, labels, torch.arange(len(labels)))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def targets(self) -> Tensor:
        """The labels of this set, in its own order."""
        return self.labels[self.index]

    def subset(self, rows: Tensor | Sequence[int]) -> "Samples":
        """The samples at these positions of this set (no image is copied)."""
        return Samples(
            self.images, self.labels, self.index[torch.as_tensor(rows, dtype=torch.int64)]
        )

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Images (uint8, channels last in memory, ``[B, 3, H, W]`` in shape) and labels."""
        where = self.index[rows]
        return self.images[where].permute(0, 3, 1, 2), self.labels[where]


@dataclass(frozen=True)
class Domain:
    """One source of images: what its clients train on, and an independent test set."""

    name: str
    train: Samples
    test: Samples


@dataclass(frozen=True)
class DomainSet:
    """A data set: domains that share their classes and their image size."""

    name: str
    classes: tuple[str, ...]
    image_size: int
    domains: tuple[Domain, ...]

    @property
    def domain_names(self) -> tuple[str, ...]:
        return tuple(domain.name for domain in self.domains)
