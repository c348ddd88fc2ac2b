"""Randomness with an address.

Every random stream is derived from (seed, purpose, round, client), so adding or
removing one client changes no other client's stream, and a resumed run continues
with the same bits without storing any generator state.
"""

from hashlib import blake2b

import numpy as np
import torch


def derive(seed: int, purpose: str, round: int = 0, client: str = "") -> int:
    """A 63-bit seed for this address."""
    address = f"{seed}\x1f{purpose}\x1f{round}\x1f{client}".encode()
    return int.from_bytes(blake2b(address, digest_size=8).digest(), "big") >> 1


def torch_generator(
    seed: int, purpose: str, round: int = 0, client: str = "", device: str = "cpu"
) -> torch.Generator:
    """A torch generator for this address."""
    return torch.Generator(device).manual_seed(derive(seed, purpose, round, client))


def numpy_generator(
    seed: int, purpose: str, round: int = 0, client: str = ""
) -> np.random.Generator:
    """A NumPy generator for this address."""
    return np.random.Generator(np.random.PCG64(derive(seed, purpose, round, client)))
