import math

import pytest
import torch
from hypothesis import given
from torch import Tensor

from foul.learning.losses import classification_loss, fooling_loss

from .batches import random_features, seeds

LABELS = torch.tensor([0, 2, 2, 1])


def shares(row: list[float]) -> list[float]:
    powers = [math.exp(x) for x in row]
    return [power / sum(powers) for power in powers]


@given(seeds)
def test_are_their_formulas(seed: int) -> None:
    logits = 3 * random_features(4, seed)
    p = [shares(row)[y] for row, y in zip(logits.tolist(), LABELS.tolist(), strict=True)]
    assert float(classification_loss(logits, LABELS)) == pytest.approx(
        sum(-math.log(x) for x in p) / 4
    )
    assert float(fooling_loss(logits, LABELS)) == pytest.approx(
        sum(-math.log(1 - x) for x in p) / 4
    )


@pytest.mark.parametrize("loss", [classification_loss, fooling_loss])
def test_gradients(loss: object) -> None:
    assert callable(loss)
    logits = random_features(4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, LABELS), logits)


def one_sample(own: float) -> Tensor:
    return torch.tensor([[own, 0.0, 0.0]], requires_grad=True)


def test_fooling_falls_as_the_answer_gets_worse_and_never_below_zero() -> None:
    label = torch.tensor([0])
    losses = [fooling_loss(one_sample(own), label).item() for own in (5.0, 1.0, -1.0, -50.0)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(0.0, abs=1e-6)
    assert losses[-1] >= 0


@pytest.mark.parametrize("own", [20.0, 100.0, 1000.0])
def test_a_sure_psi_still_feels_a_bounded_push(own: float) -> None:
    logits = one_sample(own)
    loss = fooling_loss(logits, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert math.isfinite(loss.item())
    # d/dx of log(e^x + 2) - log 2 tends to 1: descending it lowers the own class.
    torch.testing.assert_close(gradient, torch.tensor([[1.0, -0.5, -0.5]]), atol=1e-6, rtol=0)


def test_fooling_has_a_slope_where_every_label_is_sure() -> None:
    logits = torch.tensor([[50.0, 0.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(fooling_loss(logits, torch.tensor([0])), logits)
    torch.testing.assert_close(gradient, torch.tensor([[1.0, -0.5, -0.5]]))
