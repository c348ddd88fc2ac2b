import numpy as np
import pytest

from foul.matching.convex import Problem
from foul.matching.factored import solve_factored
from foul.matching.solver import solve


@pytest.mark.parametrize(("clients", "columns"), [(300, 100), (300, 400), (700, 60)])
@pytest.mark.parametrize("radius", [0.1, 0.5, 2.0])
def test_agrees_with_the_gram_matrix(clients: int, columns: int, radius: float) -> None:
    rng = np.random.default_rng(0)
    domains = rng.normal(size=(4, columns))
    factor = rng.normal(size=(clients, columns)) + 1.5 * domains[np.arange(clients) * 4 // clients]
    factor /= np.linalg.norm(factor, axis=1).max()
    blocks = (np.arange(clients) * 4 // clients == 3).astype(np.intp)
    anchor = factor[blocks == 0].mean(axis=0)
    anchor /= np.linalg.norm(anchor)
    factor[blocks == 1] *= -1
    whole = solve(Problem(factor @ factor.T, factor @ anchor, radius, blocks))
    point = solve_factored(factor, factor @ anchor, radius, blocks, 1e-8, batch=32)
    assert point.gap <= 1e-6
    assert abs(point.objective - whole.objective) <= 1e-6
    assert point.weights.min() >= 0
    assert point.weights[blocks == 0].sum() == pytest.approx(1)
    assert point.weights[blocks == 1].sum() == pytest.approx(1)
