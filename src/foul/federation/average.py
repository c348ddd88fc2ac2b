"""Sample-weighted mean of replies, folded in one at a time (decision 10)."""

from collections.abc import Mapping

import torch
from torch import Tensor


class WeightedMean:
    r"""Accumulates :math:`\sum_u n_u \theta_u` in float64, so that the order of clients matters
    less than a float32 rounding and the mean of equal models is that model, bit for bit.

    Buffers are averaged like weights (decision 17); integer buffers are rounded.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._dtypes: dict[str, torch.dtype] = {}
        self.weight = 0.0

    def add(self, tensors: Mapping[str, Tensor], weight: float) -> None:
        for name, tensor in tensors.items():
            if name in self._sums:
                self._sums[name].add_(tensor, alpha=weight)
            else:
                self._sums[name] = tensor.double() * weight
                self._dtypes[name] = tensor.dtype
        self.weight += weight

    def result(self) -> dict[str, Tensor]:
        """The mean, in the tensors' own types."""
        return {
            name: self._cast(total / self.weight, self._dtypes[name])
            for name, total in self._sums.items()
        }

    @staticmethod
    def _cast(mean: Tensor, dtype: torch.dtype) -> Tensor:
        return (mean if dtype.is_floating_point else mean.round()).to(dtype)
