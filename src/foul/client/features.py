"""Outputs of the frozen parts, computed once per client and kept in memory-mapped files."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from foul.data.domains import Samples
from foul.federation.messages import Tensors


@dataclass(frozen=True)
class Features:
    """What the scope needs of each sample: E's output, z_K and the label."""

    extracted: Tensor
    z_k: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """E's output (channels last in memory), z_K and labels of these rows."""
        return self.extracted[rows].permute(0, 3, 1, 2), self.z_k[rows], self.labels[rows]


@dataclass(frozen=True)
class FeatureStore:
    """A folder of memory-mapped features, shared by all workers of a run.

    The key names the frozen parts (a hash of their tensors), so that features of another model
    are never mistaken for these.
    """

    root: Path

    def load(self, key: str, client: str, split: str, samples: Samples) -> Features | None:
        """The features of a client's split, or nothing if they were not computed."""
        files = [self._file(key, client, split, part) for part in ("e", "k")]
        if not all(file.exists() for file in files):
            return None
        extracted, z_k = (torch.from_numpy(np.load(file, mmap_mode="c")) for file in files)
        if len(extracted) != len(samples) or len(z_k) != len(samples):
            # The client's data has changed since: these outputs belong to other samples.
            return None
        return Features(extracted, z_k, samples.targets)

    def save(self, key: str, client: str, split: str, extracted: Tensor, z_k: Tensor) -> None:
        """Keep E's output `[N, H, W, C]` and z_K `[N, D]` of a split."""
        for part, values in (("e", extracted), ("k", z_k)):
            file = self._file(key, client, split, part)
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_suffix(f".{os.getpid()}.tmp")
            with temporary.open("wb") as handle:
                np.save(handle, values.numpy())
            temporary.replace(file)

    def save_rest(self, key: str, tensors: Tensors) -> None:
        """Keep the frozen tensors that the scope is trained with (a head, running statistics)."""
        save_atomically(self._rest(key), tensors)

    def load_rest(self, key: str) -> Tensors | None:
        """The tensors kept by `save_rest`, or nothing."""
        file = self._rest(key)
        return load_file(file) if file.exists() else None

    def keep(self, owner: str, what: str, round: int, tensors: Tensors) -> None:
        """Keep something between rounds; that of the round before stays, so that this one can be
        done again."""
        save_atomically(self._kept(owner, what, round), tensors)
        self._kept(owner, what, round - 2).unlink(missing_ok=True)

    def kept(self, owner: str, what: str, round: int) -> Tensors | None:
        """What was kept in that round, or nothing."""
        file = self._kept(owner, what, round)
        return load_file(file) if file.exists() else None

    def _kept(self, owner: str, what: str, round: int) -> Path:
        return self.root / "sessions" / f"{owner}-{what}-{round}.safetensors"

    def _rest(self, key: str) -> Path:
        return self.root / key / "rest.safetensors"

    def _file(self, key: str, client: str, split: str, part: str) -> Path:
        return self.root / key / f"{client}-{split}-{part}.npy"


def save_atomically(file: Path, tensors: Tensors) -> None:
    """Write tensors so that no other process ever reads half of them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_bytes(save({name: t.contiguous() for name, t in tensors.items()}))
    temporary.replace(file)
