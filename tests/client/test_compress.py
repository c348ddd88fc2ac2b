from typing import get_args

import pytest
import torch
from factories import same_bits
from hypothesis import given
from hypothesis import strategies as st

from foul.client.compress import SCALE, Precision, decode, encode
from foul.federation.messages import Tensors

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def deltas(seed: int, size: float = 1.0) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"V.weight": (4, 3, 3, 3), "V.bias": (4,), "head.weight": (3, 8)}
    return {n: size * torch.randn(shape, generator=generator) for n, shape in shapes.items()}


def test_float32_is_exact() -> None:
    assert same_bits(decode(encode(deltas(0), "float32")), deltas(0))


@pytest.mark.parametrize(("precision", "error"), [("bfloat16", 2**-8), ("float16", 2**-11)])
def test_half_precision_rounds_and_halves_the_bytes(precision: Precision, error: float) -> None:
    sent = encode(deltas(1), precision)
    assert sum(t.nbytes for t in sent.values()) * 2 == sum(t.nbytes for t in deltas(1).values())
    for name, value in decode(sent).items():
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, deltas(1)[name], rtol=error, atol=1e-7)


@given(st.integers(0, 99), st.sampled_from([1e-12, 1e-3, 1.0, 1e12]))
def test_8_bits_are_wrong_by_half_a_step_at_most(seed: int, size: float) -> None:
    original = deltas(seed, size)
    sent = encode(original, "int8")
    assert sent.keys() == original.keys() | {name + SCALE for name in original}
    for name, value in decode(sent).items():
        assert sent[name].dtype == torch.int8
        assert float(sent[name + SCALE]) == pytest.approx(float(original[name].abs().max()) / 127)
        step = float(sent[name + SCALE])
        assert float((value - original[name]).abs().max()) <= step / 2 * (1 + 1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_nothing_is_nothing(precision: Precision) -> None:
    zero = {"V.bias": torch.zeros(3)}
    assert same_bits(decode(encode(zero, precision)), zero)
    assert decode(encode({}, precision)) == {}


def test_not_finite_stays_visible_in_8_bits() -> None:
    """The server looks for NaN in what arrives: the scale must not hide it."""
    broken = {"V.bias": torch.tensor([1.0, float("nan")])}
    assert not bool(torch.isfinite(encode(broken, "int8")["V.bias" + SCALE]).all())
