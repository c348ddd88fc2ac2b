"""What crosses the border between server and client: tensors and settings, nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from torch import Tensor

Tensors = dict[str, Tensor]
Numbers = dict[str, Any]
"""JSON-like values: numbers, strings, lists and dicts of them."""


def payload_bytes(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> int:
    """Bytes of the tensors' elements and of the values as JSON."""
    return sum(tensor.nbytes for tensor in tensors.values()) + len(json.dumps(values))


@dataclass(frozen=True)
class ClientInfo:
    """What the server may know of a client: its name, its domain and how many samples it has."""

    id: str
    domain: str
    samples: Mapping[str, int]
    """Number of samples in each split (train, validation, test)."""


@dataclass(frozen=True)
class Request:
    """One named task for one client."""

    client: str
    task: str
    round: int
    tensors: Tensors
    settings: Numbers

    @property
    def bytes(self) -> int:
        return payload_bytes(self.tensors, self.settings)


@dataclass(frozen=True)
class Reply:
    """What a client answers; `error` says why there is no usable answer."""

    client: str
    tensors: Tensors = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)
    flops: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def bytes(self) -> int:
        return payload_bytes(self.tensors, self.numbers)


def join_groups(groups: Mapping[str, Tensors]) -> Tensors:
    """Several sets of tensors as one: each name behind that of its group."""
    return {
        f"{group}.{name}": tensor
        for group, tensors in groups.items()
        for name, tensor in tensors.items()
    }


def take_group(tensors: Tensors, group: str) -> Tensors:
    """One of the sets that were joined."""
    prefix = f"{group}."
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def added(one: Tensors, other: Tensors) -> Tensors:
    """The sums of the tensors of equal names."""
    return {name: tensor + other[name] for name, tensor in one.items()}


def key_of(tensors: Tensors) -> str:
    """A hash of names and values."""
    digest = blake2b(digest_size=12)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
