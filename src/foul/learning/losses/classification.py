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
    same direction (psi wants to be wrong) and is bounded below by 0.
    """
    own = functional.one_hot(labels, logits.shape[1]).bool()
    others = logits.masked_fill(own, -torch.inf)
    # 1 - P_y is the others' share: no cancellation, and a sure psi still feels a gradient.
    return (torch.logsumexp(logits, 1) - torch.logsumexp(others, 1)).mean()
