import re

import pytest
import torch
from factories import MakeNet, same_bits, snapshot
from forget_cases import MakeCase
from method_rounds import asked, finish
from torch import nn

from foul.errors import UserError
from foul.unlearning.methods import make_method
from foul.unlearning.not_ import negated


def test_the_named_layers_change_their_sign_and_nothing_else(make_net: MakeNet) -> None:
    tensors = snapshot(make_net())
    changed = negated(tensors, ("E.conv1", "head"))
    assert changed.keys() == tensors.keys()
    for name, tensor in changed.items():
        ours = name in ("E.conv1.weight", "head.weight", "head.bias")
        assert tensor.equal(-tensors[name] if ours else tensors[name]), name
    assert same_bits(negated(changed, ("E.conv1", "head")), tensors)
    assert same_bits(negated(tensors, ()), tensors)


@pytest.mark.parametrize("layer", ["E.conv1", "head"])
def test_the_layers_output_is_exactly_minus_what_it_was(make_net: MakeNet, layer: str) -> None:
    net = make_net()
    module = net.get_submodule(layer)
    shape = (5, 3, 16, 16) if isinstance(module, nn.Conv2d) else (5, net.head.in_features)
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = module(inputs)
        net.load_state_dict(negated(snapshot(net), (layer,)))
        assert module(inputs).equal(-before)


def test_a_layer_that_is_not_there_is_named_with_the_nearest(make_net: MakeNet) -> None:
    message = re.escape("no layer 'E.conv11'. Did you mean 'E.conv1'?")
    with pytest.raises(UserError, match=message):
        negated(snapshot(make_net()), ("E.conv11",))


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_it_starts_from_the_learned_model_with_its_first_layer_negated(
    case_for: MakeCase, make_net: MakeNet, norm: str
) -> None:
    case = case_for(norm=norm)
    start = make_method("not").start(case).tensors
    assert same_bits(start, negated(case.learned, ("E.conv1",)))
    images = torch.randn(9, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    outputs = []
    for tensors in (case.learned, start):
        net = make_net(norm=norm)
        net.load_state_dict(tensors)
        with torch.no_grad():
            outputs.append(net.eval()(images))
    # The normalisation behind it does not undo it.
    assert not torch.allclose(outputs[0], outputs[1], atol=1e-2)


def test_without_a_negated_layer_it_is_going_on(case_for: MakeCase) -> None:
    one = finish(make_method("not", ["layers=[]", "rounds=2", "rate=0.3"]), case_for())
    other = finish(make_method("continue", ["rounds=2", "rate=0.3"]), case_for())
    assert same_bits(one.tensors, other.tensors)
    assert (one.round, one.finished) == (2, "all 2 rounds done")
    negative = finish(make_method("not", ["rounds=2", "rate=0.3"]), case_for())
    assert not same_bits(negative.tensors, one.tensors)


def test_forget_clients_are_not_asked(case_for: MakeCase) -> None:
    case = case_for()
    finish(make_method("not", ["rounds=1"]), case)
    assert asked(case) == {client.id for client in case.request.retain}
