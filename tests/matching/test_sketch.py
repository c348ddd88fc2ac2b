import numpy as np
import pytest
import torch

from foul.matching import MatchingOptions, gram_matrix, match, match_sketches, sharpen, sketch

CLIENTS, LENGTH = 40, 3001


@pytest.fixture
def deltas() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    domains = torch.randn(4, LENGTH, generator=generator)
    noise = torch.randn(CLIENTS, LENGTH, generator=generator)
    return noise + 2 * domains[torch.arange(CLIENTS) * 4 // CLIENTS]


FORGET = np.arange(CLIENTS) >= 30


def test_is_linear_and_the_same_for_a_client_alone(deltas: torch.Tensor) -> None:
    together = sketch(deltas, 64, seed=1)
    alone = torch.cat([sketch([delta], 64, seed=1) for delta in deltas])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(
        sketch([deltas.sum(0)], 64, 1)[0], together.sum(0), atol=1e-3, rtol=0
    )
    assert not torch.equal(together, sketch(deltas, 64, seed=2))


def test_every_coordinate_lands_in_one_bucket_with_a_sign() -> None:
    image = sketch(torch.eye(100), 16, seed=0)
    assert (image.abs().sum(dim=1) == 1).all()
    assert (image.abs().max(dim=1).values == 1).all()


def test_products_are_unbiased(deltas: torch.Tensor) -> None:
    pair = deltas[[0, 39]].double()
    products = [sketch(pair, 64, seed) for seed in range(300)]
    estimates = torch.stack([image @ image.T for image in products])
    exact = pair @ pair.T
    spread = estimates.std(dim=0) / 300**0.5
    assert ((estimates.mean(dim=0) - exact).abs() < 4 * spread).all()
    # a count sketch promises a standard deviation of at most sqrt(2 / m) |d_u| |d_v|
    bound = (2 / 64) ** 0.5 * torch.outer(exact.diagonal(), exact.diagonal()).sqrt()
    assert (estimates.std(dim=0) < 1.2 * bound).all()


@pytest.mark.parametrize("dimension", [16, 512])
def test_matching_of_sketches(deltas: torch.Tensor, dimension: int) -> None:
    # 16 takes the path without a Gram matrix, 512 the one with it.
    sketches = sketch(deltas, dimension, seed=0)
    matching = match_sketches(sketches, FORGET)
    wide = sketches.double().numpy()
    direct = match(wide @ wide.T, FORGET)
    assert matching.relative_gap <= 1e-6
    assert matching.objective == pytest.approx(direct.objective, abs=1e-6 * direct.anchor_norm**2)


def test_sharpened_sketches_are_exact_along_one_direction(deltas: torch.Tensor) -> None:
    anchor = np.where(FORGET, 0.0, 1.0) / 30
    gram = gram_matrix(deltas.double()).values
    rows = sharpen(sketch(deltas, 64, seed=0), anchor, gram @ anchor)
    np.testing.assert_allclose(rows @ (rows.T @ anchor), gram @ anchor, rtol=1e-4)
    matching = match_sketches(rows, FORGET)
    assert matching.anchor_norm == pytest.approx(np.sqrt(anchor @ gram @ anchor), rel=1e-5)
    unchanged = sketch(deltas, 64, seed=0)
    np.testing.assert_array_equal(sharpen(unchanged, np.zeros(40), np.zeros(40)), unchanged)


@pytest.mark.parametrize("sharp", [False, True])
def test_loses_little_objective_at_moderate_dimension(deltas: torch.Tensor, sharp: bool) -> None:
    gram = gram_matrix(deltas).values
    exact = match(gram, FORGET)
    sketches = sketch(deltas, 1024, seed=0).numpy()
    if sharp:
        shares = np.where(FORGET, 0.0, 1.0) / 30
        sketches = sharpen(sketches, shares, gram @ shares)
    weights = match_sketches(sketches, FORGET).simplex_weights
    signs = np.where(FORGET, -1.0, 1.0)
    anchor = np.where(FORGET, 0.0, 1.0) / 30
    signed = signs * weights
    norm = float(np.sqrt(signed @ gram @ signed))
    value = float(anchor @ gram @ signed) + 0.5 * exact.anchor_norm * norm
    scale = exact.anchor_norm * np.sqrt(gram.diagonal().max())
    assert -1e-9 <= (value - exact.objective) / scale < (0.005 if sharp else 0.02)


def test_zero_sketches_have_no_anchor() -> None:
    assert match_sketches(np.zeros((5, 2)), np.arange(5) > 3).flag == "no_anchor"


def test_bad_input(deltas: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="dimension is 0"):
        sketch(deltas, 0, seed=0)
    with pytest.raises(ValueError, match="finite matrix"):
        match_sketches(np.full((3, 2), np.nan), np.zeros(3, bool), MatchingOptions())
    with pytest.raises(ValueError, match="no coordinates"):
        sketch(torch.zeros(3, 0), 4, seed=0)
