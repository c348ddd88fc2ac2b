"""L_V: within a class, the non-causal codes must vary."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional


def variance_loss(
    z: Tensor,
    labels: Tensor,
    form: Literal["total", "per_dimension"] = "total",
    epsilon: float = 1e-4,
) -> Tensor:
    r"""Hinge on the spread within each class,

    .. math:: \frac{1}{C} \sum_c \max\bigl(0, 1 - \sqrt{\mathrm{Var}(Z^c_V) + \epsilon}\bigr),
       \qquad \mathrm{Var}(Z^c) = \mathbb{E}_{i \in B_c} \lVert z_i - \bar z_c \rVert^2 .

    ``form="per_dimension"`` takes the hinge of each dimension's standard deviation and averages
    (VICReg); the total variance is nearly satisfied from the start in high dimension (decision
    23). One sample has no variance, so classes with fewer than two samples do not count.
    """
    z = z.flatten(1)
    classes, own, count = torch.unique(labels, return_inverse=True, return_counts=True)
    member = functional.one_hot(own, len(classes)).to(z.dtype)
    size = member.sum(0).unsqueeze(1)
    centred = z - (member.T @ z / size)[own]
    variance = member.T @ centred.pow(2) / size
    if form == "total":
        variance = variance.sum(1, keepdim=True)
    hinge = functional.relu(1 - torch.sqrt(variance + epsilon)).mean(1)
    counted = (count >= 2).to(z.dtype)
    mean: Tensor = (hinge * counted).sum() / counted.sum().clamp_min(1)
    return mean
