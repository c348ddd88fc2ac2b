import math
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.learning.losses import prototype_loss
from foul.learning.losses.causal import unit

from .batches import label_lists, random_features, require_finite, seeds

Form = Literal["paper", "softmax"]
FORMS: tuple[Form, ...] = ("paper", "softmax")


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def typed_out(z: list[list[float]], labels: list[int], tau: float, form: Form) -> float:
    """Decision 7 with plain loops; 0 where there is one class."""
    present = sorted(set(labels))
    if len(present) == 1:
        return 0.0
    prototypes = {}
    for c in present:
        own = [row for row, label in zip(z, labels, strict=True) if label == c]
        prototypes[c] = [sum(column) / len(own) for column in zip(*own, strict=True)]
    total = 0.0
    for row, y in zip(z, labels, strict=True):
        scores = {c: math.exp(cosine(row, p) / tau) for c, p in prototypes.items()}
        below = sum(s for c, s in scores.items() if form == "softmax" or c != y)
        total += -math.log(scores[y] / below)
    return total / len(labels)


@pytest.mark.parametrize("form", FORMS)
@given(label_lists, seeds, st.floats(0.1, 5.0))
def test_is_its_formula(form: Form, labels: list[int], seed: int, tau: float) -> None:
    z = random_features(len(labels), seed)
    loss = prototype_loss(z, torch.tensor(labels), tau, form)
    assert loss.item() == pytest.approx(typed_out(z.tolist(), labels, tau, form), abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2], [4, 1, 4, 4, 1]])
def test_gradient(form: Form, labels: list[int]) -> None:
    z = random_features(5).requires_grad_()
    targets = torch.tensor(labels)
    assert torch.autograd.gradcheck(lambda x: prototype_loss(x, targets, 0.5, form), z)


def test_latent_maps_are_flattened() -> None:
    z, labels = random_features(6, 1, 2, 3, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert prototype_loss(z, labels).equal(prototype_loss(z.flatten(1), labels))


def test_labels_are_only_names() -> None:
    z = random_features(6)
    low, high = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([7, 300, 301, 7, 300, 301])
    assert prototype_loss(z, low).equal(prototype_loss(z, high))


def test_two_separated_classes_reach_the_least_loss() -> None:
    z = torch.tensor([[1.0, 0.0], [3.0, 0.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1])
    # Own prototype at cosine 1, the other at -1: -log(e^(1/tau) / e^(-1/tau)) = -2 / tau.
    assert float(prototype_loss(z, labels, 0.5)) == pytest.approx(-4.0)
    expected = math.log(1 + math.exp(-4.0))
    assert float(prototype_loss(z, labels, 0.5, "softmax")) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_one_class_has_nothing_to_contrast(form: Form) -> None:
    z = random_features(4).requires_grad_()
    loss = prototype_loss(z, torch.full((4,), 2), form=form)
    (gradient,) = torch.autograd.grad(loss, z)
    assert loss.item() == 0.0
    assert (gradient == 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-18, 1e-12])
@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 2), slice(None)])
def test_vanishing_features_stay_finite(form: Form, scale: float, rows: slice) -> None:
    z = random_features(4).float()
    z[rows] *= scale
    z.requires_grad_()
    require_finite(prototype_loss(z, torch.tensor([0, 0, 1, 1]), 0.5, form), z)


@pytest.mark.parametrize("form", FORMS)
def test_a_prototype_of_opposites_is_zero_and_harmless(form: Form) -> None:
    z = torch.tensor([[1.0, 2.0], [-1.0, -2.0], [0.5, 0.5]], requires_grad=True)
    loss = prototype_loss(z, torch.tensor([0, 0, 1]), form=form)
    require_finite(loss, z)


def test_a_small_temperature_stays_finite() -> None:
    z = random_features(6).float().requires_grad_()
    require_finite(prototype_loss(z, torch.tensor([0, 1, 2, 0, 1, 2]), 1e-3), z)


def test_unit_rows() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-12, 0.0]])
    torch.testing.assert_close(unit(x), torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]]))
