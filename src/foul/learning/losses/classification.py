"""L_gtc and its relatives: cross-entropy, and the adversarial pair of decision 12."""

import torch
from torch import Tensor
from torch.nn import functional


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    r"""L_gtc: :math:`-\mathbb{E}_i \log P_{y_i}`, the cross-entropy of a head."""
    return functional.cross_entropy(logits, labels)


def fooling_loss(logits: Tensor, labels: Tensor) -> Tensor:
    r"""What psi descends while E and K descend psi's cross-entropy:
    :math:`-\mathbb{E}_i \log(1 - P_{y_i})`.

    The paper's psi *maximises* the cross-entropy, which has no upper bound; this form has the
    same direction (psi wants to be wrong) and is bounded below.
    """
    log_p = functional.log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).squeeze(1)
    # log(1 - e^a) without cancellation; a = 0 would be an infinite loss.
    return -torch.log(-torch.expm1(log_p.clamp_max(-1e-6))).mean()
