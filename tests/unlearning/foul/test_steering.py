from collections.abc import Sequence
from dataclasses import replace

import pytest
from factories import same_bits
from forget_cases import MakeCase, gone
from foul_rounds import foul

from foul.data import ClientData
from foul.errors import UserError
from foul.unlearning.foul.steering import weighted_mean


def test_means_are_weighted_unless_nothing_weighs() -> None:
    assert weighted_mean([1.0, 0.0], [1, 3]) == 0.25
    assert weighted_mean([1.0, 0.0], [0, 0]) == 0.5


def test_without_any_estimate_nothing_is_forgotten_and_the_remedy_is_told(
    case_for: MakeCase, tiny_clients: Sequence[ClientData]
) -> None:
    """The only other client with held-out samples of the domain is away."""
    first, *others = tiny_clients
    bare = replace(first, validation=first.validation.subset([]))
    peer = next(c.id for c in others if c.domain == bare.domain)
    case = case_for(f"client:{bare.id}", clients=[bare, *others], meddle=gone(peer))
    method = foul(control=True)
    state = method.start(case)
    with pytest.raises(UserError, match=f"held-out samples of {bare.domain} .*target=0.5"):
        method.step(case, state)
    assert (state.round, state.finished) == (0, "")
    assert same_bits(state.tensors, case.learned)
    # With a target of one's own there is nothing to estimate.
    chosen = foul(control=True, target=0.5)
    assert chosen.step(case, chosen.start(case))["target"] == 0.5
