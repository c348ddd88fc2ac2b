"""Symmetric matrices as they travel: one half, in 16 bits."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from foul.client.compress import SCALE, decode
from foul.federation.messages import Tensors


def pack(matrices: Mapping[str, Tensor]) -> Tensors:
    """The upper halves, row by row, as shares of their largest element: no second moment is too
    small or too large for 16 bits."""
    sent: Tensors = {}
    for name, matrix in matrices.items():
        half = matrix[tuple(torch.triu_indices(*matrix.shape))]
        scale = half.abs().max().clamp_min(1e-30)
        sent[name] = (half / scale).to(torch.float16)
        sent[name + SCALE] = scale.float().reshape(1)
    return sent


def unpack(sent: Tensors) -> Tensors:
    """The matrices in float32."""
    return {name: _whole(half) for name, half in decode(sent).items()}


def _whole(half: Tensor) -> Tensor:
    size = (math.isqrt(8 * len(half) + 1) - 1) // 2
    matrix = half.new_zeros(size, size)
    rows, columns = torch.triu_indices(size, size)
    matrix[rows, columns] = half
    matrix[columns, rows] = half
    return matrix
