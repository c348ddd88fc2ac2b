"""The hash that names a model version."""

from collections.abc import Mapping
from hashlib import sha256

import torch


def fingerprint(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of the weights: names, types, shapes and bytes, in the order of the names.

    Not of the file: the same weights beside other notes are the same version.
    """
    digest = sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}\x1f{tensor.dtype}\x1f{tuple(tensor.shape)}\x1f".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
