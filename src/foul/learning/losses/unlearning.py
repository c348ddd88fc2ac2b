"""What forget clients descend: a loss that is bounded, so that forgetting comes to rest."""

import torch
from torch import Tensor
from torch.nn import functional


def bounded_unlearning_loss(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Mean of :math:`-\log(1 - p_y / 2)`, between 0 (the label is ruled out) and log 2.

    Minus a descent path is not an ascent path, and the negated cross-entropy has no floor; this
    loss (FedOSD's) has both, and its gradient vanishes once the label is forgotten.
    """
    p = functional.softmax(logits, 1).gather(1, labels.unsqueeze(1)).squeeze(1)
    return -torch.log1p(-0.5 * p).mean()
