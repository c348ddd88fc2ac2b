import math

import pytest
import torch
from factories import learning
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from foul.learning.adapters import LowRankAdapters, SparseAdapters
from foul.learning.optimisers import adapting, masked_sgd, quantised, ternary


def parameters_of(*shapes: tuple[int, ...]) -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return {
        f"w{place}": nn.Parameter(torch.randn(shape, generator=generator))
        for place, shape in enumerate(shapes)
    }


def descend(
    optimiser: torch.optim.Optimizer, parameters: dict[str, nn.Parameter], steps: int = 4
) -> None:
    """Steps down a curved loss of all parameters, as local training takes them."""
    for step in range(steps):
        optimiser.zero_grad(set_to_none=True)
        loss = sum(((p - step) ** 2 + torch.sin(3 * p)).sum() for p in parameters.values())
        assert isinstance(loss, Tensor)
        torch.autograd.backward(loss)
        optimiser.step()


# Masks


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_masked_weights_never_move_and_the_others_as_ever(momentum: float, decay: float) -> None:
    config = learning(momentum=momentum, weight_decay=decay)
    parameters, free = (parameters_of((6, 5), (7,)) for _ in range(2))
    start = {name: p.detach().clone() for name, p in parameters.items()}
    mask = {"w0": torch.rand(6, 5, generator=torch.Generator().manual_seed(1)) > 0.5}
    descend(masked_sgd(mask)(parameters, 0.1, config), parameters)
    plain = torch.optim.SGD(free.values(), 0.1, momentum, weight_decay=decay)
    descend(plain, free)
    assert parameters["w0"][~mask["w0"]].equal(start["w0"][~mask["w0"]])
    torch.testing.assert_close(parameters["w0"][mask["w0"]], free["w0"][mask["w0"]])
    # A parameter without a mask is trained as ever.
    torch.testing.assert_close(parameters["w1"], free["w1"])
    assert not bool((parameters["w0"] == start["w0"])[mask["w0"]].any())


def test_a_mask_of_channels_stands_for_their_whole_filters() -> None:
    parameters, other = (parameters_of((4, 3, 2, 2)) for _ in range(2))
    channels = torch.tensor([True, False, True, False]).view(4, 1, 1, 1)
    descend(masked_sgd({"w0": channels})(parameters, 0.1, learning()), parameters)
    descend(masked_sgd({"w0": channels.expand(4, 3, 2, 2)})(other, 0.1, learning()), other)
    assert parameters["w0"].equal(other["w0"])
    assert parameters["w0"][1::2].equal(parameters_of((4, 3, 2, 2))["w0"][1::2])


def test_a_mask_of_a_tensor_that_is_not_trained_does_nothing() -> None:
    parameters, other = (parameters_of((3,)) for _ in range(2))
    descend(masked_sgd({"elsewhere": torch.zeros(9)})(parameters, 0.1, learning()), parameters)
    descend(masked_sgd({})(other, 0.1, learning()), other)
    assert parameters["w0"].equal(other["w0"])


# Adapters


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sparse_adapters_are_masked_weights(momentum: float) -> None:
    """W + M * A, A from 0, is SGD of W that the mask's zeros do not feel."""
    config = learning(momentum=momentum, weight_decay=0.0)
    parameters, masked = (parameters_of((6, 5), (7,)) for _ in range(2))
    adapters = SparseAdapters({"w0": parameters["w0"].detach().clone()}, 3, 0.4)
    values = {name: nn.Parameter(t) for name, t in adapters.start().items()}
    descend(adapting(adapters, values)(parameters, 0.1, config), parameters)
    ones = torch.zeros(30).index_fill(0, adapters.places["w0"], 1).view(6, 5)
    mask = {"w0": ones, "w1": torch.zeros(7)}
    descend(masked_sgd(mask)(masked, 0.1, config), masked)
    torch.testing.assert_close(parameters["w0"], masked["w0"])
    assert parameters["w1"].equal(masked["w1"])
    assert parameters["w0"].equal(adapters.adapted(dict(values))["w0"])


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_low_rank_adapters_descend_as_autograd_says(decay: float) -> None:
    config = learning(momentum=0.9, weight_decay=decay)
    parameters = parameters_of((4, 3, 2, 2), (7,))
    base, bias = (p.detach().clone() for p in parameters.values())
    adapters = LowRankAdapters({"w0": base}, 3, rank=2, alpha=6.0)
    values = {name: nn.Parameter(t) for name, t in adapters.start().items()}
    descend(adapting(adapters, values)(parameters, 0.02, config), parameters)

    start = adapters.start()
    a, b = nn.Parameter(start["w0.A"]), nn.Parameter(start["w0.B"])
    optimiser = torch.optim.SGD([a, b], 0.02, 0.9, weight_decay=decay)
    for step in range(4):
        optimiser.zero_grad()
        weight = base + 3.0 * (b @ a).view(4, 3, 2, 2)
        torch.autograd.backward(((weight - step) ** 2 + torch.sin(3 * weight)).sum())
        optimiser.step()
    torch.testing.assert_close(values["w0.A"], a)
    torch.testing.assert_close(values["w0.B"], b)
    torch.testing.assert_close(parameters["w0"], base + 3.0 * (b @ a).view(4, 3, 2, 2))
    assert not bool((values["w0.A"] == adapters.start()["w0.A"]).any())
    assert parameters["w1"].equal(bias)


def test_what_has_no_adapter_has_no_gradient_either() -> None:
    parameters = parameters_of((6, 5), (7,))
    # As an earlier task would leave it: it must not count when gradients are clipped.
    parameters["w1"].grad = torch.ones(7)
    adapters = SparseAdapters({"w0": parameters["w0"].detach().clone()}, 0, 0.5)
    values = {name: nn.Parameter(t) for name, t in adapters.start().items()}
    optimiser = adapting(adapters, values)(parameters, 0.1, learning())
    assert parameters["w1"].grad is None
    descend(optimiser, parameters)
    assert [p.requires_grad for p in parameters.values()] == [True, False]
    assert all(p.grad is None for p in parameters.values())


def test_adapters_of_a_weight_that_the_loss_does_not_need_stay() -> None:
    parameters = parameters_of((6, 5), (7,))
    start = {name: p.detach().clone() for name, p in parameters.items()}
    adapters = SparseAdapters(start, 0, 0.5)
    values = {name: nn.Parameter(t) for name, t in adapters.start().items()}
    optimiser = adapting(adapters, values)(parameters, 0.1, learning(weight_decay=0.0))
    descend(optimiser, {"w0": parameters["w0"]})
    assert parameters["w1"].equal(start["w1"])
    assert not parameters["w0"].equal(start["w0"])


# Ternary steps


def phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@given(st.floats(-4, 4, width=32), st.floats(0, 2, width=32), st.floats(0.125, 3, width=32))
def test_the_likeliest_of_three_steps(gradient: float, tau: float, sigma: float) -> None:
    up = 1 - phi((tau - gradient) / sigma)
    down = phi((-tau - gradient) / sigma)
    chances = {1.0: up, -1.0: down, 0.0: 1 - up - down}
    got = float(quantised(torch.tensor([gradient], dtype=torch.float64), tau, sigma)[0])
    if gradient == 0:
        # Up and down are equally likely, whatever the chance of neither.
        assert got == 0
    else:
        assert chances[got] >= max(chances.values()) - 1e-9


@given(st.floats(0, 4, width=32), st.floats(0.25, 2, width=32), st.floats(0.125, 3, width=32))
def test_opposite_gradients_make_opposite_steps(gradient: float, tau: float, sigma: float) -> None:
    pair = torch.tensor([gradient, -gradient], dtype=torch.float64)
    one, other = quantised(pair, tau, sigma).tolist()
    assert one == -other
    assert one >= 0


def test_a_ternary_step_is_the_rate_up_down_or_nothing() -> None:
    parameter = nn.Parameter(torch.zeros(4))
    # The root of the mean square is 2, so that the signs are of 1.5, -1.25, 0.25 and 0.36.
    parameter.grad = torch.tensor([3.0, -2.5, 0.5, 0.7071068])
    optimiser = ternary(1.0, 0.01)({"w": parameter}, 0.25, learning())
    size = math.sqrt((9 + 6.25 + 0.25 + 0.5) / 4)
    assert size == 2
    optimiser.step()
    assert parameter.tolist() == [-0.25, 0.25, 0.0, 0.0]


@given(st.floats(1e-6, 1e6))
def test_ternary_steps_do_not_depend_on_the_gradients_size(scale: float) -> None:
    direction = torch.tensor([2.0, -1.0, 0.1, 0.0])
    moved = []
    for factor in (1.0, scale):
        parameter = nn.Parameter(torch.zeros(4))
        parameter.grad = factor * direction
        ternary(0.5, 0.1)({"w": parameter}, 1.0, learning()).step()
        moved.append(parameter.tolist())
    assert moved[0] == moved[1] == [-1.0, 1.0, 0.0, 0.0]


def test_a_ternary_step_without_a_gradient_is_none() -> None:
    used, unused = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(2))
    used.grad = torch.tensor([1.0, -1.0])
    ternary(0.5, 0.1)({"used": used, "unused": unused}, 0.5, learning()).step()
    assert used.tolist() == [-0.5, 0.5]
    assert unused.tolist() == [1.0, 1.0]
    # Nor does a gradient of zeros divide by zero.
    used.grad = torch.zeros(2)
    ternary(0.5, 0.1)({"used": used}, 0.5, learning()).step()
    assert used.tolist() == [-0.5, 0.5]
