import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.client.symmetric import pack, unpack


@given(st.integers(1, 9), st.sampled_from([1e-12, 1.0, 1e9]), st.integers(0, 99))
def test_matrices_come_back_nearly_as_they_were(size: int, unit: float, seed: int) -> None:
    values = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
    moment = unit * values @ values.T
    (back,) = unpack(pack({"a.weight": moment})).values()
    assert back.equal(back.T)
    torch.testing.assert_close(back, moment, rtol=1e-3, atol=1e-3 * float(moment.abs().max()))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_half_of_them_travels_in_16_bits(size: int) -> None:
    sent = pack({"a": torch.eye(size), "b": torch.zeros(size, size)})
    assert sum(tensor.nbytes for tensor in sent.values()) == 2 * (size * (size + 1) + 4)
    assert unpack(sent)["a"].equal(torch.eye(size))
    assert unpack(sent)["b"].equal(torch.zeros(size, size))
