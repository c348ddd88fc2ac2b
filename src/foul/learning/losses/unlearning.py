"""What forget clients descend: losses that are bounded, so that forgetting comes to rest."""

import torch
from torch import Tensor
from torch.nn import functional

from foul.learning.losses.classification import log_others


def bounded_unlearning_loss(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Mean of :math:`-\log(1 - p_y / 2)`, between 0 (the label is ruled out) and log 2.

    Minus a descent path is not an ascent path, and the negated cross-entropy has no floor; this
    loss (FedOSD's) has both, and its gradient vanishes once the label is forgotten.
    """
    p = functional.softmax(logits, 1).gather(1, labels.unsqueeze(1)).squeeze(1)
    return -torch.log1p(-0.5 * p).mean()


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    r""":math:`\log \frac{p_y}{1 - p_y}` of each sample, by which an attack on the loss sorts them.
    Unlike the loss it has the same slope everywhere, however sure or wrong an answer is."""
    return logits.gather(1, labels.unsqueeze(1)).squeeze(1) - log_others(logits, labels)


def weakest_loss(logits: Tensor, labels: Tensor, aim: float, depth: float) -> Tensor:
    r"""How far the weakest answers of a batch are from being wrong:
    :math:`\frac{1}{B} \sum_{i \le (1 - a) B} \max(0, m_{(i)} + \delta)` for the batch's margins in
    increasing order, the accuracy `aim` a and the `depth` :math:`\delta`.

    To lower accuracy to a, only a share 1 - a of the answers must become wrong, and those that are
    nearest to it take the least change. It is 0, and forgetting comes to rest, where so many have a
    margin of :math:`-\delta`; until then its slope is 1, however sure an answer is.
    """
    # One at least: of small batches the share would be none, and nothing ever forgotten.
    count = max(round((1 - aim) * len(labels)), int(aim < 1))
    weakest = margins(logits, labels).sort().values[:count]
    return functional.relu(weakest + depth).sum() / len(labels)


def levelling_loss(logits: Tensor, labels: Tensor, held_out: Tensor) -> Tensor:
    r"""How much surer a batch is answered than held-out samples:
    :math:`\frac{1}{B} \sum_i \max(0, m_{(i)} - Q(\frac{i - 1/2}{B}))` for the batch's margins in
    increasing order and the quantiles Q of the `held_out` margins.

    The one-sided distance of two distributions (Wasserstein's, with p = 1): who never saw the
    samples would answer them as held-out ones. It is 0 where nothing is surer than there.
    """
    own = margins(logits, labels).sort().values
    ranks = (torch.arange(len(own), device=own.device, dtype=own.dtype) + 0.5) / len(own)
    return functional.relu(own - torch.quantile(held_out, ranks)).mean()
