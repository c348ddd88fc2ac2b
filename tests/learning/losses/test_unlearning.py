import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from foul.learning.losses import (
    bounded_unlearning_loss,
    levelling_loss,
    margins,
    weakest_loss,
)

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


@given(logits, st.integers(0, 2))
def test_a_margin_is_the_logit_of_the_labels_probability(values: torch.Tensor, label: int) -> None:
    found = margins(values, torch.full((len(values),), label))
    for row, margin in zip(values.tolist(), found.tolist(), strict=True):
        others = [value for place, value in enumerate(row) if place != label]
        # log p - log (1 - p); the normalisation of both is the same.
        assert margin == pytest.approx(row[label] - math.log(sum(map(math.exp, others))))


@given(logits, st.floats(0, 1), st.floats(0, 5))
def test_the_weakest_answers_are_led_to_be_wrong(
    values: torch.Tensor, aim: float, depth: float
) -> None:
    labels = torch.zeros(len(values), dtype=torch.long)
    own = sorted(margins(values, labels).tolist())
    # However small the batch, one answer, unless all may stay right.
    weakest = own[: max(1, round((1 - aim) * len(own)))] if aim < 1 else []
    expected = sum(max(0.0, margin + depth) for margin in weakest) / len(own)
    assert float(weakest_loss(values, labels, aim, depth)) == pytest.approx(expected, abs=1e-9)


def test_so_many_answers_as_the_aim_leaves_are_not_touched_and_the_others_come_to_rest() -> None:
    # Two labels: a margin is the difference of the logits.
    values = torch.tensor([[9.0, 0.0], [-2.0, 0.0], [0.5, 0.0], [3.0, 0.0]], requires_grad=True)
    labels = torch.zeros(4, dtype=torch.long)
    for aim, pushed in ((1.0, []), (0.75, []), (0.5, [2]), (0.25, [2, 3]), (0.0, [0, 2, 3])):
        loss = weakest_loss(values, labels, aim, depth=1.0)
        (gradient,) = torch.autograd.grad(loss, values)
        # Of four answers one is wrong already; the slope is the same for the sure and the unsure.
        assert gradient[:, 0].tolist() == [0.25 if place in pushed else 0.0 for place in range(4)]


@given(logits, st.lists(st.floats(-60, 60), min_size=1, max_size=7))
def test_levelling_is_the_distance_of_quantiles_above_those_of_held_out_samples(
    values: torch.Tensor, held_out: list[float]
) -> None:
    labels = torch.zeros(len(values), dtype=torch.long)
    loss = levelling_loss(values, labels, torch.tensor(held_out, dtype=torch.float64))
    own = sorted(margins(values, labels).tolist())
    places = [(place + 0.5) / len(own) for place in range(len(own))]
    above = [max(0.0, m - q) for m, q in zip(own, np.quantile(held_out, places), strict=True)]
    assert float(loss) == pytest.approx(sum(above) / len(above), rel=1e-9, abs=1e-9)


def test_levelling_comes_to_rest_where_samples_are_no_surer_than_held_out_ones() -> None:
    values = torch.tensor([[2.0, 0.0], [-1.0, 0.0], [0.5, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 0])
    for shift, pushed in ((1.0, 0.0), (3.0, 0.0), (-2.0, 1.0)):
        # Two labels: a margin is the difference of the logits.
        loss = levelling_loss(values, labels, torch.tensor([0.5, 2.0, -1.0]) + shift)
        (gradient,) = torch.autograd.grad(loss, values)
        assert gradient[:, 0].tolist() == pytest.approx([pushed / 3] * 3)
