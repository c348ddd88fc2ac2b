import math
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.learning.losses import variance_loss

from .batches import label_lists, random_features, require_finite, seeds

Form = Literal["total", "per_dimension"]
FORMS: tuple[Form, ...] = ("total", "per_dimension")
EPSILON = 1e-4


def hinge(variance: float) -> float:
    return max(0.0, 1 - math.sqrt(variance + EPSILON))


def typed_out(z: list[list[float]], labels: list[int], form: Form) -> float:
    """The formula with plain loops, over the classes with two samples or more."""
    hinges = []
    for c in set(labels):
        own = [row for row, label in zip(z, labels, strict=True) if label == c]
        if len(own) < 2:
            continue
        variances = []
        for column in zip(*own, strict=True):
            mean = sum(column) / len(own)
            variances.append(sum((x - mean) ** 2 for x in column) / len(own))
        if form == "total":
            hinges.append(hinge(sum(variances)))
        else:
            hinges.append(sum(map(hinge, variances)) / len(variances))
    return sum(hinges) / max(1, len(hinges))


@pytest.mark.parametrize("form", FORMS)
@given(label_lists, seeds, st.floats(0.01, 2.0))
def test_is_its_formula(form: Form, labels: list[int], seed: int, spread: float) -> None:
    z = random_features(len(labels), seed) * spread
    loss = variance_loss(z, torch.tensor(labels), form)
    assert loss.item() == pytest.approx(typed_out(z.tolist(), labels, form), abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 1], [3, 3, 3, 3, 1]])
def test_gradient(form: Form, labels: list[int]) -> None:
    z = (0.2 * random_features(5)).requires_grad_()
    targets = torch.tensor(labels)
    assert torch.autograd.gradcheck(lambda x: variance_loss(x, targets, form), z)


@pytest.mark.parametrize("form", FORMS)
def test_spread_codes_cost_exactly_nothing(form: Form) -> None:
    z = torch.tensor([[2.0, 2.0], [-2.0, -2.0], [5.0, 1.0], [1.0, 5.0]], requires_grad=True)
    loss = variance_loss(z, torch.tensor([0, 0, 1, 1]), form)
    (gradient,) = torch.autograd.grad(loss, z)
    assert loss.item() == 0.0
    assert (gradient == 0).all()


def test_the_total_is_satisfied_where_single_dimensions_are_not() -> None:
    # 100 dimensions of deviation 0.2: total variance 4, each dimension far from 1.
    z = torch.full((2, 100), 0.2) * torch.tensor([[1.0], [-1.0]])
    labels = torch.tensor([0, 0])
    assert float(variance_loss(z, labels)) == 0.0
    assert float(variance_loss(z, labels, "per_dimension")) == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_collapsed_codes_cost_most_with_a_finite_gradient(form: Form) -> None:
    z = torch.zeros(4, 3, requires_grad=True)
    loss = variance_loss(z, torch.tensor([0, 0, 1, 1]), form)
    assert loss.item() == pytest.approx(1 - math.sqrt(EPSILON))
    require_finite(loss, z)


@pytest.mark.parametrize("form", FORMS)
def test_a_class_with_one_sample_does_not_count(form: Form) -> None:
    z = 0.1 * random_features(3)
    together = variance_loss(z, torch.tensor([0, 0, 1]), form)
    torch.testing.assert_close(together, variance_loss(z[:2], torch.tensor([0, 0]), form))


@pytest.mark.parametrize("form", FORMS)
def test_only_single_samples_cost_nothing(form: Form) -> None:
    z = random_features(3).requires_grad_()
    loss = variance_loss(z, torch.tensor([2, 0, 1]), form)
    assert loss.item() == 0.0
    require_finite(loss, z)


def test_latent_maps_are_flattened() -> None:
    z, labels = 0.1 * random_features(6, 1, 2, 3, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert variance_loss(z, labels).equal(variance_loss(z.flatten(1), labels))
