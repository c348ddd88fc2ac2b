from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.seeds import derive, numpy_generator, torch_generator

ADDRESSES = list(product((0, 1, 12), ("shuffle", "latents"), (0, 1, 2, 23), ("", "a-0", "a-1")))


def test_different_addresses_have_different_seeds() -> None:
    assert len({derive(*address) for address in ADDRESSES}) == len(ADDRESSES)


@given(st.integers(0), st.text(max_size=8), st.integers(0, 10**6), st.text(max_size=8))
def test_a_seed_fits_every_generator(seed: int, purpose: str, round: int, client: str) -> None:
    value = derive(seed, purpose, round, client)
    assert value == derive(seed, purpose, round, client)
    assert 0 <= value < 2**63
    torch.Generator().manual_seed(value)
    np.random.PCG64(value)


def test_parts_of_an_address_do_not_run_together() -> None:
    assert derive(1, "a", 11, "b") != derive(1, "a", 1, "1b")
    assert derive(1, "1a") != derive(11, "a")


def test_the_value_of_an_address_is_pinned() -> None:
    """Stored runs continue with these bits: changing them breaks every resume."""
    assert derive(0, "shuffle/mid", 3, "north-1") == 4_237_323_019_031_146_852


@pytest.mark.parametrize(("round", "client", "same"), [(3, "a", True), (4, "a", False)])
def test_generators_follow_the_address(round: int, client: str, same: bool) -> None:
    first, second = torch_generator(0, "x", 3, "a"), torch_generator(0, "x", round, client)
    assert torch.rand(4, generator=first).equal(torch.rand(4, generator=second)) is same
    one, other = numpy_generator(0, "x", 3, "a"), numpy_generator(0, "x", round, client)
    assert bool((one.random(4) == other.random(4)).all()) is same
