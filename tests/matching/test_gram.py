from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from foul.matching import gram_matrix, weighted_sum
from foul.matching.gram import Deltas, blocks

CLIENTS, LENGTH = 5, 1000


@pytest.fixture
def matrix() -> Tensor:
    return torch.randn(CLIENTS, LENGTH, generator=torch.Generator().manual_seed(0))


def named(matrix: Tensor) -> list[dict[str, Tensor]]:
    return [{"a": row[:600].reshape(20, 30), "b": row[600:607], "c": row[607:]} for row in matrix]


FORMS: dict[str, Callable[[Tensor], Deltas]] = {
    "matrix": lambda matrix: matrix,
    "rows of a matrix": lambda matrix: list(matrix),
    "every second row": lambda matrix: matrix.repeat_interleave(2, dim=0)[::2],
    "vectors": lambda matrix: [row.clone() for row in matrix],
    "reversed rows": lambda matrix: list(matrix.flip(0).flip(0).unbind()[::-1])[::-1],
    "transposed": lambda matrix: matrix.T.contiguous().T,
    "by name": named,
    "float64": lambda matrix: matrix.double(),
}


@pytest.mark.parametrize("block", [7, 64, 1 << 16])
@pytest.mark.parametrize("form", FORMS)
def test_equals_float64_product(matrix: Tensor, form: str, block: int) -> None:
    gram = gram_matrix(FORMS[form](matrix), block)
    wide = matrix.double().numpy()
    norms = np.linalg.norm(wide, axis=1)
    assert np.abs(gram.values - wide @ wide.T).max() < 1e-6 * norms.max() ** 2
    assert (gram.values == gram.values.T).all()
    assert gram.finite.all()


@pytest.mark.parametrize("form", FORMS)
def test_weighted_sum(matrix: Tensor, form: str) -> None:
    weights = np.linspace(-1, 1, CLIENTS)
    total = weighted_sum(weights, FORMS[form](matrix))
    if isinstance(total, dict):
        assert total["a"].shape == (20, 30)
        total = torch.cat([part.flatten() for part in total.values()])
    assert total.dtype == torch.float32
    expected = weights @ matrix.double().numpy()
    np.testing.assert_allclose(total.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_deltas_are_widened_first(matrix: Tensor, dtype: torch.dtype) -> None:
    half = matrix.to(dtype)
    wide = half.double().numpy()
    assert np.abs(gram_matrix(half, 64).values - wide @ wide.T).max() < 1e-3
    np.testing.assert_allclose(weighted_sum([0.5] * CLIENTS, half), 0.5 * wide.sum(0), atol=1e-5)


def test_memory_map(matrix: Tensor, tmp_path: Path) -> None:
    path = tmp_path / "deltas.bin"
    matrix.numpy().tofile(path)
    mapped = torch.from_file(str(path), size=matrix.numel()).reshape(CLIENTS, LENGTH)
    np.testing.assert_array_equal(gram_matrix(mapped).values, gram_matrix(matrix).values)
    assert torch.equal(weighted_sum([1.0] * CLIENTS, mapped), weighted_sum([1.0] * 5, matrix))


def test_rows_of_one_matrix_are_not_copied(matrix: Tensor) -> None:
    for form in (matrix, list(matrix), list(matrix[::2])):
        first = next(blocks(form, 64))
        assert first.untyped_storage().data_ptr() == matrix.untyped_storage().data_ptr()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("form", ["matrix", "vectors", "by name"])
def test_broken_client_is_found_and_spoils_nobody(matrix: Tensor, form: str, value: float) -> None:
    clean = gram_matrix(FORMS[form](matrix), 64)
    matrix[2, 500] = value
    gram = gram_matrix(FORMS[form](matrix), 64)
    assert gram.finite.tolist() == [True, True, False, True, True]
    good = np.ix_(gram.finite, gram.finite)
    np.testing.assert_allclose(gram.values[good], clean.values[good], rtol=1e-6, atol=1e-4)
    total = weighted_sum([1.0, 1.0, 0.0, 1.0, 1.0], matrix)
    assert torch.isfinite(total).all()


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e-12, 1e12, 1e22, 1e30])
def test_scales_whose_squares_leave_float32(matrix: Tensor, scale: float) -> None:
    scaled = matrix * scale
    wide = scaled.double().numpy()
    gram = gram_matrix(scaled, 64)
    assert gram.finite.all()
    np.testing.assert_allclose(gram.values, wide @ wide.T, atol=1e-6 * LENGTH * scale**2)


def test_zero_delta_is_finite(matrix: Tensor) -> None:
    matrix[1] = 0
    gram = gram_matrix(matrix)
    assert gram.finite.all()
    assert (gram.values[1] == 0).all()


def test_one_client(matrix: Tensor) -> None:
    assert gram_matrix([matrix[0]]).values.shape == (1, 1)


@pytest.mark.parametrize(
    "deltas",
    [
        [],
        torch.zeros(3),
        torch.zeros(3, 0),
        [torch.zeros(3), torch.zeros(4)],
        [{"a": torch.zeros(3)}, {"b": torch.zeros(3)}],
        [{"a": torch.zeros(3)}, {"a": torch.zeros(1, 3)}],
    ],
    ids=["none", "vector", "empty", "lengths", "names", "shapes"],
)
def test_deltas_that_do_not_fit(deltas: Deltas) -> None:
    with pytest.raises(ValueError, match=r"client|dimensions|same scope|no coordinates"):
        gram_matrix(deltas)


def test_weights_that_do_not_fit(matrix: Tensor) -> None:
    with pytest.raises(ValueError, match="3 weights for 5 deltas"):
        weighted_sum([1.0, 1.0, 1.0], matrix)
