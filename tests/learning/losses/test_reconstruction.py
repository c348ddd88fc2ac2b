import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from foul.learning.losses import kl_to_standard_normal, reconstruction_loss

from .batches import random_features, seeds


@given(seeds, st.floats(0.1, 3.0))
def test_kl_is_that_of_torch_distributions(seed: int, scale: float) -> None:
    mean, logvar = scale * random_features(5, seed), scale * random_features(5, seed + 1)
    oracle = kl_divergence(Normal(mean, torch.exp(logvar / 2)), Normal(0.0, 1.0)).mean()
    torch.testing.assert_close(kl_to_standard_normal(mean, logvar), oracle.double())


def test_the_prior_itself_has_no_divergence() -> None:
    assert float(kl_to_standard_normal(torch.zeros(2, 3), torch.zeros(2, 3))) == 0.0


def test_is_its_formula() -> None:
    image, drawn = random_features(2, 0, 3, 2, 2), random_features(2, 1, 3, 2, 2)
    mean, logvar = random_features(2, 2, 4, 1, 1), random_features(2, 3, 4, 1, 1)
    pixels = list(zip(image.flatten().tolist(), drawn.flatten().tolist(), strict=True))
    codes = list(zip(mean.flatten().tolist(), logvar.flatten().tolist(), strict=True))
    squares = sum((x - y) ** 2 for x, y in pixels) / len(pixels)
    kl = sum(0.5 * (m * m + math.exp(v) - 1 - v) for m, v in codes) / len(codes)
    loss = reconstruction_loss(image, drawn, mean, logvar, 0.3)
    assert loss.item() == pytest.approx(squares + 0.3 * kl)


def test_codes_far_from_the_prior_cost_more() -> None:
    """Decision 8: the paper's minus sign would reward them without bound."""
    image = torch.zeros(1, 3, 2, 2)
    near, far = (
        reconstruction_loss(image, image, torch.full((1, 2), m), torch.zeros(1, 2), 1.0)
        for m in (1.0, 10.0)
    )
    assert float(near) == pytest.approx(0.5)
    assert float(far) == pytest.approx(50.0)


def test_gradient() -> None:
    image = random_features(2, 0, 1, 2, 2)
    inputs = tuple(random_features(2, n, 1, 2, 2).requires_grad_() for n in (1, 2, 3))
    assert torch.autograd.gradcheck(
        lambda d, m, v: reconstruction_loss(image, d, m, v, 0.5), inputs
    )
