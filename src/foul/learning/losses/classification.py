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
    # 1 - P_y is the others' share: no cancellation, and a sure psi still feels a gradient.
    return (torch.logsumexp(logits, 1) - log_others(logits, labels)).mean()


def log_others(logits: Tensor, labels: Tensor) -> Tensor:
    r""":math:`\log \sum_{c \ne y_i} e^{l_{ic}}`: what speaks for any label but the right one."""
    own = functional.one_hot(labels, logits.shape[1]).bool()
    return torch.logsumexp(logits.masked_fill(own, -torch.inf), 1)
