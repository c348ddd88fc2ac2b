import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.federation.messages import Tensors
from foul.learning.adapters import (
    Adapters,
    LowRankAdapters,
    SparseAdapters,
    make_adapters,
    random_places,
)


def base() -> Tensors:
    generator = torch.Generator().manual_seed(0)
    shapes = {"conv.weight": (6, 4, 3, 3), "fc.weight": (5, 8), "fc.bias": (5,)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def random_values(adapters: Adapters) -> Tensors:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(t.shape, generator=generator) for n, t in adapters.start().items()}


BOTH = [
    {"form": "sparse", "density": 0.3, "seed": 2},
    {"form": "low-rank", "rank": 2, "alpha": 3.0, "seed": 2},
]


@pytest.mark.parametrize("settings", BOTH)
def test_adapters_start_by_changing_nothing(settings: dict[str, object]) -> None:
    adapters = make_adapters(base(), **settings)  # type: ignore[arg-type]
    for name, tensor in adapters.adapted(adapters.start()).items():
        assert tensor.equal(base()[name])


@pytest.mark.parametrize("settings", BOTH)
def test_equal_settings_make_equal_adapters_and_another_seed_others(
    settings: dict[str, object],
) -> None:
    one, same, other = (
        make_adapters(base(), **settings | {"seed": seed})  # type: ignore[arg-type]
        for seed in (2, 2, 3)
    )
    values = {name: tensor + 1 for name, tensor in one.start().items()}
    assert one.start().keys() == same.start().keys() == other.start().keys()
    assert all(one.start()[name].equal(same.start()[name]) for name in values)
    weights = [adapters.adapted(values)["conv.weight"] for adapters in (one, same)]
    assert weights[0].equal(weights[1])
    changed = {name: tensor + 1 for name, tensor in other.start().items()}
    assert not other.adapted(changed)["conv.weight"].equal(weights[0])


@pytest.mark.parametrize("settings", BOTH)
def test_gradients_are_those_of_autograd(settings: dict[str, object]) -> None:
    adapters = make_adapters(base(), **settings)  # type: ignore[arg-type]
    values = {name: t.requires_grad_() for name, t in random_values(adapters).items()}
    weights = adapters.adapted(values)
    outer = {name: torch.cos(weight.detach()) for name, weight in weights.items()}
    torch.autograd.backward(torch.stack([torch.sin(w).sum() for w in weights.values()]).sum())
    for name, gradient in adapters.gradients(values, outer).items():
        torch.testing.assert_close(gradient, values[name].grad)
        assert bool(gradient.any())


def test_sparse_values_are_added_at_their_places_alone() -> None:
    adapters = SparseAdapters(base(), 2, 0.3)
    values = random_values(adapters)
    for name, tensor in adapters.adapted(values).items():
        change = (tensor - base()[name]).flatten()
        places = adapters.places[name]
        assert set(change.nonzero().flatten().tolist()) == set(places.tolist())
        torch.testing.assert_close(change[places], values[name])


def test_low_rank_values_are_two_factors_of_each_weight() -> None:
    adapters = LowRankAdapters(base(), 2, rank=2, alpha=3.0)
    values = random_values(adapters)
    assert {name: tuple(tensor.shape) for name, tensor in values.items()} == {
        "conv.weight.A": (2, 36),
        "conv.weight.B": (6, 2),
        "fc.weight.A": (2, 8),
        "fc.weight.B": (5, 2),
    }
    adapted = adapters.adapted(values)
    for name in ("conv.weight", "fc.weight"):
        change = 1.5 * values[f"{name}.B"] @ values[f"{name}.A"]
        torch.testing.assert_close(adapted[name], base()[name] + change.view_as(base()[name]))
    assert "fc.bias" not in adapted


def test_low_rank_factors_start_small_and_at_zero() -> None:
    start = LowRankAdapters(base(), 2, rank=8, alpha=3.0).start()
    assert not bool(start["conv.weight.B"].any())
    assert 0 < float(start["conv.weight.A"].abs().max()) <= 36**-0.5
    assert float(start["conv.weight.A"].abs().mean()) == pytest.approx(0.5 * 36**-0.5, rel=0.15)


@given(st.integers(1, 500), st.floats(0.001, 1), st.integers(0, 5))
def test_places_are_the_share_asked_for(count: int, density: float, seed: int) -> None:
    places = random_places(count, density, seed, "w").tolist()
    assert len(places) == max(1, round(density * count))
    assert places == sorted(set(places))
    assert 0 <= places[0] <= places[-1] < count


def test_places_are_spread_evenly_and_differ_by_name() -> None:
    places = random_places(100_000, 0.1, 0, "w").double()
    assert float(places.mean()) == pytest.approx(50_000, rel=0.02)
    assert not random_places(100, 0.1, 0, "w").equal(random_places(100, 0.1, 0, "v"))


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(KeyError, match="prompt"):
        make_adapters(base(), "prompt", seed=0)
