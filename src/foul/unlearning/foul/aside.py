r"""Where forget clients may move weights: in directions that retain clients do not use.

A layer answers W x. A change of W by a matrix D changes what retain clients are answered by
:math:`E |D x|^2 = \mathrm{tr}(D C D^T)`, with C the second moment of their inputs x. Of all changes
with the same effect on the forget clients' loss (to first order), the one that costs retain clients
least, with a penalty :math:`\lambda |D|^2` for its length, is their gradient times

    M = lambda (C + lambda)^-1

up to a factor: 1 along what retain clients never see, next to 0 along what they see often. The
gradients of retain clients lie in the span of their inputs: what is changed beside it, they do not
take back.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from foul.federation.messages import Tensors
from foul.unlearning.foul.scope import stages_of


def movable(scope: Mapping[str, Tensor]) -> list[str]:
    """The weights that forget clients move: those of V's first stage, and the head's.

    Domains part early: there the forget clients' inputs differ from the others' most. What lies
    behind sees what all have in common.
    """
    stages = stages_of(scope)
    first = min(stages.values(), default=0)
    return [
        name
        for name, tensor in scope.items()
        if tensor.ndim >= 2 and (name == "head.weight" or stages.get(name) == first)
    ]


def pooled_moments(told: Iterable[tuple[Tensors, float]]) -> Tensors:
    """The mean of clients' second moments by these weights, in double precision."""
    sums: Tensors = {}
    total = 0.0
    for moments, weight in told:
        total += weight
        for name, moment in moments.items():
            part = weight * moment.double()
            sums[name] = sums[name] + part if name in sums else part
    return {name: moment / total for name, moment in sums.items()}


def aside(moment: Tensor, share: float) -> Tensor:
    r""":math:`\lambda (C + \lambda)^{-1}` for a second moment C, :math:`\lambda` being this share
    of its mean eigenvalue. Nothing was ever seen: the identity."""
    values, vectors = torch.linalg.eigh(moment)
    values = values.clamp_min(0.0)
    penalty = share * float(values.mean())
    if penalty == 0.0:
        return torch.eye(len(moment), dtype=moment.dtype)
    matrix: Tensor = (vectors * (penalty / (values + penalty))) @ vectors.T
    return matrix
