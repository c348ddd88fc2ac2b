import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from foul.learning.losses import bounded_unlearning_loss

logits = st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=5).map(
    lambda rows: torch.tensor(rows, dtype=torch.float64)
)


@given(logits, st.integers(0, 2))
def test_it_is_the_formula_and_bounded(values: torch.Tensor, label: int) -> None:
    labels = torch.full((len(values),), label)
    loss = bounded_unlearning_loss(values, labels)
    p = [float(functional.softmax(row, 0)[label]) for row in values]
    torch.testing.assert_close(
        float(loss), sum(-math.log(1 - x / 2) for x in p) / len(p), rtol=1e-9, atol=1e-12
    )
    assert 0 <= float(loss) <= math.log(2) + 1e-12


def test_the_bounds_are_reached_with_finite_gradients() -> None:
    for sure, expected in ((1e4, math.log(2)), (-1e4, 0.0)):
        values = torch.tensor([[sure, 0.0, 0.0]], requires_grad=True)
        loss = bounded_unlearning_loss(values, torch.tensor([0]))
        (gradient,) = torch.autograd.grad(loss, values)
        assert math.isclose(loss.item(), expected, abs_tol=1e-6)
        # Ruled out, there is nothing left to forget; quite sure, the softmax is saturated.
        torch.testing.assert_close(gradient, torch.zeros_like(gradient))


def test_gradients_are_exact() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(4, 3, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.tensor([0, 1, 2, 1])
    assert torch.autograd.gradcheck(lambda x: bounded_unlearning_loss(x, labels), values)
    # Descending it makes the label less likely.
    (gradient,) = torch.autograd.grad(bounded_unlearning_loss(values, labels), values)
    assert bool((gradient[torch.arange(4), labels] > 0).all())
