import torch
from factories import MakeNet
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foul.config.schema import ModelConfig
from foul.models import build_network
from foul.unlearning.foul.aside import aside, movable, pooled_moments
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.scope import in_scope


def moment(size: int, rank: int, seed: int) -> Tensor:
    """Second moment of inputs that span so many dimensions."""
    seen = torch.randn(rank, size, generator=torch.Generator().manual_seed(seed)).double()
    return seen.T @ seen / max(1, rank)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1e-4, 10), st.integers(0, 99))
def test_the_matrix_is_that_of_the_formula(size: int, rank: int, share: float, seed: int) -> None:
    c = moment(size, rank, seed)
    penalty = share * torch.trace(c) / size
    # In double precision throughout: a number of no dimensions would take the identity's.
    expected = penalty * torch.linalg.inv(c + penalty * torch.eye(size, dtype=c.dtype))
    torch.testing.assert_close(aside(c, share), expected, rtol=1e-8, atol=1e-10)


@given(st.integers(2, 8), st.integers(0, 99))
def test_it_leads_past_what_retain_clients_see(size: int, seed: int) -> None:
    rank = size // 2
    seen = torch.randn(rank, size, generator=torch.Generator().manual_seed(seed)).double()
    matrix = aside(seen.T @ seen / rank, 1e-6)
    assert float((seen @ matrix).norm()) < 1e-2 * float(seen.norm())
    # And takes nothing from what they never see.
    beside = torch.linalg.svd(seen).Vh[rank:]
    torch.testing.assert_close(beside @ matrix, beside, rtol=0, atol=1e-6)


@given(st.integers(0, 99))
def test_no_change_of_the_same_effect_costs_less(seed: int) -> None:
    """To first order: of all D with the same product with a gradient G, G M has the least cost."""
    generator = torch.Generator().manual_seed(seed)
    c, share = moment(5, 3, seed), 0.1
    penalty = share * torch.trace(c) / 5
    gradient, other = (torch.randn(4, 5, generator=generator).double() for _ in range(2))
    change = gradient @ aside(c, share)

    def cost(d: Tensor) -> Tensor:
        return torch.trace(d @ c @ d.T) + penalty * d.square().sum()

    # Changed along something that the forget clients' loss does not notice.
    other -= gradient * (other * gradient).sum() / gradient.square().sum()
    assert cost(change) <= cost(change + 0.1 * other) + 1e-12


def test_where_nothing_is_seen_every_way_is_open() -> None:
    assert aside(torch.zeros(3, 3).double(), 0.1).equal(torch.eye(3).double())


def test_moments_are_pooled_by_samples() -> None:
    one, other = moment(3, 2, 0).float(), moment(3, 2, 1).float()
    pooled = pooled_moments([({"a": one}, 30), ({"a": other}, 10)])
    torch.testing.assert_close(pooled["a"], 0.75 * one.double() + 0.25 * other.double())


def test_forget_clients_move_the_first_stage_of_v_and_the_head(make_net: MakeNet) -> None:
    def names(model: ModelConfig, **values: object) -> set[str]:
        parameters = dict(build_network(model, 7, 64, seed=0).named_parameters())
        scope = in_scope(FoulOptions.model_validate(values), parameters)
        return {name.removesuffix(".weight") for name in movable(scope)}

    small = {"V.layer2.0.conv1", "V.layer2.0.conv2", "V.layer2.0.downsample.0"}
    assert names(ModelConfig(backbone="small")) == {*small, "head"}
    assert names(ModelConfig(backbone="small"), scope=["V"]) == small
    assert names(ModelConfig(backbone="small"), scope=["head"]) == {"head"}
    resnet = ModelConfig(backbone="resnet18", width=0.25, split=2)
    blocks = {f"V.layer3.{block}.conv{conv}" for block in (0, 1) for conv in (1, 2)}
    assert names(resnet) == {*blocks, "V.layer3.0.downsample.0", "head"}
