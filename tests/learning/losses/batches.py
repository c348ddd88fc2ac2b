"""Batches of features and labels to try losses on."""

import torch
from hypothesis import strategies as st
from torch import Tensor

seeds = st.integers(0, 2**20)
label_lists = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def random_features(count: int, seed: int = 0, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, *(shape or (3,)), generator=generator, dtype=torch.float64)


def require_finite(loss: Tensor, z: Tensor) -> None:
    """The loss and its gradient hold no NaN and no infinity."""
    (gradient,) = torch.autograd.grad(loss, z)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
