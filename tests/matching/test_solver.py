import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from foul.matching.conic import solve_conic
from foul.matching.convex import Problem, groups_of
from foul.matching.simplex import project_simplices
from foul.matching.solver import solve


def random_problem(
    clients: int, dimension: int, radius: float, seed: int, forget: int = 0, common: float = 0.0
) -> Problem:
    rng = np.random.default_rng(seed)
    deltas = rng.normal(size=(clients, dimension)) + common * rng.normal(size=dimension)
    deltas /= np.linalg.norm(deltas, axis=1).max()
    blocks = (np.arange(clients) >= clients - forget).astype(np.intp)
    anchor = deltas[blocks == 0].mean(axis=0)
    anchor /= np.linalg.norm(anchor)
    deltas[blocks == 1] *= -1
    return Problem(deltas @ deltas.T, deltas @ anchor, radius, blocks)


def objective(problem: Problem, weights: np.ndarray) -> float:
    squared = float(weights @ problem.quadratic @ weights)
    return float(problem.linear @ weights + problem.radius * max(squared, 0.0) ** 0.5)


def slsqp(problem: Problem) -> float:
    groups = groups_of(problem.blocks)
    result = minimize(
        lambda weights: objective(problem, weights),
        (1 / np.bincount(problem.blocks))[problem.blocks],
        method="SLSQP",
        bounds=[(0, 1)] * len(problem.linear),
        constraints=[
            {"type": "eq", "fun": lambda weights, group=group: weights[group].sum() - 1}
            for group in groups
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return objective(problem, project_simplices(result.x, groups))


def conic(problem: Problem) -> float:
    weights, _ = solve_conic(problem.quadratic, problem.linear, problem.radius, problem.blocks)
    return objective(problem, project_simplices(weights, groups_of(problem.blocks)))


problems = st.builds(
    lambda clients, dimension, radius, seed, share, common: random_problem(
        clients, dimension, radius, seed, int(share * clients), common
    ),
    st.integers(1, 15),
    st.integers(1, 30),
    st.sampled_from([0.05, 0.5, 0.9, 1.0, 2.0]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3, 0.6]),
    st.sampled_from([0.0, 0.3, 3.0]),
)


@settings(deadline=None, max_examples=150)
@given(problems)
def test_never_above_slsqp_or_clarabel_and_the_gap_is_a_bound(problem: Problem) -> None:
    point = solve(problem)
    best = min(slsqp(problem), conic(problem))
    assert point.objective <= best + 1e-7
    assert point.objective - best <= point.gap + 1e-7
    assert point.gap <= 1e-6


@settings(deadline=None, max_examples=100)
@given(problems)
def test_the_point_is_what_it_says(problem: Problem) -> None:
    point = solve(problem)
    groups = groups_of(problem.blocks)
    assert point.weights.min() >= 0
    for group in groups:
        assert point.weights[group].sum() == pytest.approx(1, abs=1e-12)
    assert point.objective == pytest.approx(objective(problem, point.weights), abs=1e-7)
    # x = g + D y lies in the ball, and Phi(x) is the value reported.
    image = problem.quadratic @ point.certificate
    assert point.certificate @ image <= problem.radius**2 * (1 + 1e-6)
    slopes = problem.linear + image
    assert point.primal == pytest.approx(sum(slopes[group].min() for group in groups), abs=1e-6)


@pytest.mark.parametrize("clients", [20, 100])
@pytest.mark.parametrize("radius", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("common", [0.0, 3.0])
def test_ordinary_problems_reach_1e_8(clients: int, radius: float, common: float) -> None:
    problem = random_problem(clients, 5 * clients, radius, 1, clients // 4, common)
    assert solve(problem).gap <= 1e-8


def test_thousand_clients_reach_1e_6() -> None:
    point = solve(random_problem(1000, 3000, 0.5, 0, 250, 0.3))
    assert point.gap <= 1e-6
    assert point.iterations < 50


@pytest.mark.parametrize("ratio", [1e-4, 1e-2])
def test_deltas_of_very_different_norms(ratio: float) -> None:
    rng = np.random.default_rng(0)
    deltas = rng.normal(size=(12, 30)) * np.geomspace(ratio, 1, 12)[:, None]
    deltas /= np.linalg.norm(deltas, axis=1).max()
    anchor = deltas.mean(axis=0) / np.linalg.norm(deltas.mean(axis=0))
    problem = Problem(deltas @ deltas.T, deltas @ anchor, 0.5, np.zeros(12, np.intp))
    assert solve(problem).gap <= 1e-8


def test_origin_in_the_hull_is_certified_from_inside_the_ball() -> None:
    deltas = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5]])
    problem = Problem(deltas @ deltas.T, deltas @ np.array([0.0, 1.0]), 0.5, np.zeros(3, np.intp))
    point = solve(problem)
    assert point.norm < 1e-7
    assert point.reach < 0.9999
    assert point.gap <= 1e-7


def test_deterministic() -> None:
    problem = random_problem(40, 60, 0.5, 3, 10)
    assert (solve(problem).weights == solve(problem).weights).all()


def test_iteration_limit_still_gives_an_honest_gap() -> None:
    problem = random_problem(60, 200, 0.1, 5, 20)
    stopped = solve(problem, max_iterations=1)
    best = solve(problem).objective
    assert stopped.objective - best <= stopped.gap + 1e-12
