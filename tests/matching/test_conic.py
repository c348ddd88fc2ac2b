import numpy as np

from foul.matching.conic import solve_conic


def test_weights_and_certificate_prove_each_other() -> None:
    rng = np.random.default_rng(0)
    deltas = rng.normal(size=(8, 20)) / 5
    anchor = deltas[:5].mean(axis=0)
    deltas[5:] *= -1
    blocks = np.array([0] * 5 + [1] * 3)
    quadratic, linear, radius = deltas @ deltas.T, deltas @ anchor, 0.1
    weights, certificate = solve_conic(quadratic, linear, radius, blocks)
    direction = weights @ deltas
    update = anchor + certificate @ deltas
    assert np.linalg.norm(update - anchor) <= radius * (1 + 1e-6)
    slopes = deltas @ update
    dual = anchor @ direction + radius * np.linalg.norm(direction)
    assert abs(dual - slopes[:5].min() - slopes[5:].min()) < 1e-6
