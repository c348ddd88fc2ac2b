import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from factories import same_bits
from forget_cases import MakeCase, gone
from foul_rounds import foul, rounds

from foul.data import ClientData
from foul.errors import UserError
from foul.federation.messages import Reply, Request
from foul.unlearning.foul.steering import weighted_mean
from foul.unlearning.method import LearnedScores


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


def told_of_held_out(correct: int) -> Callable[[Request, Reply], Reply]:
    """The forget clients of `east` answer so many of 100 held-out samples right."""

    def meddle(request: Request, reply: Reply) -> Reply:
        if request.task != "unlearn" or not request.client.startswith("east"):
            return reply
        scores = {**reply.numbers["scores"], "validation": {"samples": 100, "correct": correct}}
        return replace(reply, numbers={**reply.numbers, "scores": scores})

    return meddle


@pytest.mark.parametrize(
    ("correct", "values", "lowered"),
    [
        (0, {}, True),
        (0, {"indistinct": False}, False),
        (100, {}, False),
        (0, {"forget": "weakest", "level": 0.0, "aside": 0.0}, True),
        # Who levels sees to it already, and pulls held-out answers down on the way.
        (0, {"forget": "weakest", "level": 1.0, "aside": 0.0}, False),
        # So does who steps aside.
        (0, {"forget": "weakest", "level": 0.0, "aside": 0.01}, False),
    ],
)
def test_training_samples_of_a_whole_domain_are_known_no_better_than_held_out_ones(
    case_for: MakeCase, correct: int, values: dict[str, object], lowered: bool
) -> None:
    case = case_for("domain:east", meddle=told_of_held_out(correct))
    chosen = foul(control=True, standin_rounds=1, standin_epochs=1.0, **values)
    state, [record] = rounds(case, chosen, 1)
    estimate = state.numbers["estimates"]["east"]
    assert 0 < estimate < 1
    assert record["target"] == pytest.approx(0.0 if lowered else estimate)


def test_a_difference_within_chance_is_none(case_for: MakeCase) -> None:
    chosen = {"control": True, "standin_rounds": 1, "standin_epochs": 1.0, "chance": 1.0}
    state, _ = rounds(case_for("domain:east"), foul(**chosen), 1)
    estimate = state.numbers["estimates"]["east"]
    for correct in range(1, 100):
        error = (correct / 100 * (1 - correct / 100) / 200) ** 0.5
        if correct / 100 + error >= estimate:
            break
    for count, target in ((correct, estimate), (correct - 1, (correct - 1) / 100)):
        case = case_for("domain:east", meddle=told_of_held_out(count))
        _, [record] = rounds(case, foul(**chosen), 1)
        assert record["target"] == pytest.approx(target)


@pytest.mark.parametrize(
    ("told", "right", "samples"),
    [
        ({"east-0": 1 / 3, "east-1": 2 / 3}, 3, 6),
        ({"east-0": 1.0, "east-1": 1.0}, 6, 6),
        # Who told nothing, or no accuracy, does not count.
        ({"east-0": 1 / 3}, 1, 3),
        ({"east-0": 1 / 3, "east-1": math.nan}, 1, 3),
        ({"east-0": 1 / 3, "east-1": 7.0}, 1, 3),
        ({"west-0": 0.0}, 0, 0),
    ],
)
def test_who_never_saw_a_domain_knows_it_less_well_than_who_did(
    case_for: MakeCase, told: dict[str, float], right: int, samples: int
) -> None:
    case = replace(case_for("domain:east"), scores=LearnedScores(held_out=told))
    assert {c.samples["validation"] for c in case.request.forget} == {3}
    values = {"control": True, "standin_rounds": 1, "standin_epochs": 1.0, "offset": 3.0}
    high, _ = rounds(case_for("domain:east"), foul(**values), 1)
    for handicap in (0.5, 2.0, None):
        state, _ = rounds(case, foul(handicap=handicap, **values), 1)
        expected = high.numbers["estimates"]["east"]
        if samples and handicap is not None:
            odds = (right + 0.5) / (samples - right + 0.5) * math.exp(-handicap)
            expected = max(1 / case.classes, min(expected, odds / (1 + odds)))
        assert state.numbers["estimates"]["east"] == pytest.approx(expected)


def test_what_peers_told_of_their_domain_stands(case_for: MakeCase) -> None:
    """For a single client the target is measured, not estimated."""
    case = case_for("client:east-0", meddle=told_of_held_out(0))
    state, [record] = rounds(case, foul(control=True), 1)
    assert record["target"] == pytest.approx(state.numbers["estimates"]["east"])
