import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foul.matching.simplex import project_simplex, project_simplices

vectors = arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e3, 1e3))


@given(vectors)
def test_projection_is_optimal(values: np.ndarray) -> None:
    # w is the projection exactly if <v - w, z - w> <= 0 for every vertex z.
    projected = project_simplex(values)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    residual = values - projected
    assert residual.max() - residual @ projected <= 1e-9 * (1 + np.abs(values).max())


def test_a_point_of_the_simplex_stays() -> None:
    np.testing.assert_allclose(project_simplex(np.array([0.2, 0.3, 0.5])), [0.2, 0.3, 0.5])


def test_groups_are_independent() -> None:
    values = np.array([5.0, 1.0, -2.0, 1.0])
    groups = [np.array([0, 2]), np.array([1, 3])]
    np.testing.assert_array_equal(project_simplices(values, groups), [1.0, 0.5, 0.0, 0.5])
