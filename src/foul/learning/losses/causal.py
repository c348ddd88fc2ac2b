"""L_K: samples of one class gather around their prototype, away from the others."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional


def prototype_loss(
    z: Tensor,
    labels: Tensor,
    temperature: float = 1.0,
    form: Literal["paper", "softmax"] = "paper",
) -> Tensor:
    r"""Mean over the batch of

    .. math:: -\log \frac{\exp(s(z, p_y) / \tau)}{\sum_{i \neq y} \exp(s(z, p_i) / \tau)}

    with cosine similarity :math:`s` and the batch mean :math:`p_c` of each class in the batch
    (decision 7 reads the printed sum over classes this way). ``form="softmax"`` keeps the own
    class in the denominator. A class that is not in the batch has no prototype; with only one
    class there is nothing to contrast and the loss is 0.
    """
    z = z.flatten(1)
    classes, own = torch.unique(labels, return_inverse=True)
    if len(classes) < 2:
        return z.sum() * 0.0
    member = functional.one_hot(own, len(classes)).to(z.dtype)
    prototypes = member.T @ z / member.sum(0).unsqueeze(1)
    similarity = unit(z) @ unit(prototypes).T / temperature
    positive = similarity.gather(1, own.unsqueeze(1)).squeeze(1)
    others = similarity.masked_fill(member.bool(), -torch.inf) if form == "paper" else similarity
    return (torch.logsumexp(others, 1) - positive).mean()


def unit(x: Tensor) -> Tensor:
    """Rows scaled to length 1; a row shorter than 1e-10 becomes zero, with zero gradient."""
    squared = x.pow(2).sum(1, keepdim=True)
    # The gradient holds 1 / length cubed, which overflows for shorter rows.
    zero = squared < 1e-20
    return x * torch.where(zero, 0.0, torch.where(zero, 1.0, squared).rsqrt())
