"""Batch statistics that learning fixed stay fixed, whatever the method (decision 17)."""

from dataclasses import replace

import pytest
import torch
from factories import MakeNet
from forget_cases import MakeCase
from method_rounds import finish, learned_by, with_all

from foul.federation.messages import Tensors
from foul.models import part_of
from foul.unlearning import Case
from foul.unlearning.methods import METHODS, make_method

FAST: dict[str, tuple[str, ...]] = {
    "continue": ("rounds=2",),
    "not": ("rounds=2",),
    "fedcdp": ("recovery_rounds=2",),
    "fused": ("adapter_rounds=1", "layers=2"),
    "fused-lora": ("adapter_rounds=1", "layers=2"),
    "fedosd": ("unlearning_rounds=1", "recovery_rounds=1"),
    "mode": ("degradation_rounds=1", "guidance_rounds=1"),
    "ffmu-adapted": ("rounds=2",),
    "foul": ("rounds=2", "extra=0", "standin_rounds=1"),
    "foul-paper": ("rounds=2",),
    "foul-printed": ("rounds=2",),
}
ANEW = ("retrain", "retrain-matched", "retrain-again", "fats")


def statistics(case: Case, tensors: Tensors) -> Tensors:
    """Of the parts that every method trains."""
    buffers = (name for name in case.buffers if "running" in name and part_of(name) in "EKV")
    return {name: tensors[name] for name in buffers}


def unlearned(case: Case, name: str) -> tuple[Case, Tensors]:
    method = make_method(name, FAST.get(name, ()))
    if method.learning() is not None:
        case = learned_by(method, case)
    return case, finish(method, case).tensors


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {*ANEW, "fedrecovery", "ffmu", "none"}))
def test_who_goes_on_leaves_fixed_statistics_alone(case_for: MakeCase, name: str) -> None:
    case, tensors = unlearned(case_for(norm="batch", learning__fix_statistics_after=1), name)
    left = statistics(case, case.learned)
    if name == "not":
        left["E.bn1.running_mean"] = -left["E.bn1.running_mean"]
    assert len(left) > 10
    assert all(tensors[buffer].equal(value) for buffer, value in left.items())


@pytest.mark.parametrize("name", ["continue", "not", "fedcdp", "fedosd", "mode"])
def test_statistics_that_learning_did_not_fix_move_on(case_for: MakeCase, name: str) -> None:
    case, tensors = unlearned(case_for(norm="batch"), name)
    left = statistics(case, case.learned)
    assert not any(tensors[buffer].equal(value) for buffer, value in left.items())


@pytest.mark.parametrize("name", ["retrain", "fats", "ffmu"])
def test_who_learns_anew_fixes_them_when_learning_does(case_for: MakeCase, name: str) -> None:
    """After the first of two rounds, so that one round alone gives the same statistics."""
    found = []
    for rounds in (1, 2):
        case = case_for(norm="batch", learning__fix_statistics_after=1)
        case = replace(case, learned_rounds=rounds)
        method = make_method(name, ())
        learns = method.learning() or method
        state = learns.start(with_all(case))
        for _ in range(rounds):
            learns.step(with_all(case), state)
        found.append(statistics(case, state.tensors))
    one, two = found
    assert all(one[buffer].equal(value) for buffer, value in two.items())


def test_nots_first_block_gives_minus_what_it_gave(case_for: MakeCase, make_net: MakeNet) -> None:
    """With the mean's sign changed as well, the normalised output is -x (its shift aside)."""
    case = case_for(norm="batch", learning__fix_statistics_after=1)
    start = make_method("not", ()).start(case).tensors
    images = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    outputs = []
    for tensors in (case.learned, start):
        net = make_net(norm="batch").eval()
        net.load_state_dict(tensors)
        with torch.no_grad():
            convolution, norm = (net.get_submodule(f"E.{layer}") for layer in ("conv1", "bn1"))
            shift = tensors["E.bn1.bias"][:, None, None]
            outputs.append(norm(convolution(images)) - shift)
    torch.testing.assert_close(outputs[1], -outputs[0])
