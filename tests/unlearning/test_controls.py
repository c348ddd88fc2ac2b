from typing import Any

import pytest
from factories import changed_parts, same_bits
from forget_cases import MakeCase, engine_of, repainted

from foul.data import ClientData
from foul.federation.messages import Tensors
from foul.learning.rounds import LearningState, learning_rounds
from foul.unlearning import Case, Method, MethodState
from foul.unlearning.methods import make_method


def finish(method: Method[Any], case: Case) -> MethodState:
    state = method.start(case)
    while not state.finished:
        method.step(case, state)
    return state


def bits(tensors: Tensors) -> Tensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def asked(case: Case) -> set[str]:
    return {request.client for request, _ in engine_of(case).crossed}


def test_none_is_the_learned_model(case_for: MakeCase) -> None:
    case = case_for()
    state = finish(make_method("none"), case)
    assert same_bits(state.tensors, case.learned)
    assert state.round == 0
    assert asked(case) == set()


@pytest.mark.parametrize("name", ["retrain", "retrain-again", "continue"])
def test_forget_clients_are_not_asked_and_their_pixels_do_not_matter(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...], name: str
) -> None:
    one, other = case_for(), case_for(clients=repainted(tiny_clients, "east"))
    states = [finish(make_method(name, ["rounds=2"]), case) for case in (one, other)]
    assert same_bits(states[0].tensors, states[1].tensors)
    assert asked(one) == {client.id for client in one.request.retain}
    # The test would notice: the pixels of a retain client do matter.
    third = finish(
        make_method(name, ["rounds=2"]), case_for(clients=repainted(tiny_clients, "west"))
    )
    assert not same_bits(states[0].tensors, third.tensors)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_retraining_is_learning_without_the_forgotten(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...], norm: str, momentum: float
) -> None:
    changes = {"norm": norm, "learning__server_momentum": momentum}
    case = case_for(**changes)
    state = finish(make_method("retrain"), case)
    rest = [client for client in tiny_clients if client.domain != "east"]
    alone = case_for("client:west-0", clients=rest, **changes)
    learning = LearningState(dict(alone.initial))
    records = list(
        learning_rounds(
            alone.federation,
            alone.config.learning,
            learning,
            alone.federation.clients,
            alone.buffers,
        )
    )
    assert len(records) == state.round == case.learned_rounds == 2
    assert same_bits(state.tensors, learning.tensors)


def test_retraining_goes_on_despite_patience(case_for: MakeCase) -> None:
    """As many rounds as learning took, or as were asked for."""
    case = case_for(learning__patience=1, learning__min_delta=0.9)
    state = finish(make_method("retrain", ["rounds=3"]), case)
    assert (state.round, state.finished) == (3, "all 3 rounds done")


def test_retraining_leaves_the_case_as_it_was(case_for: MakeCase) -> None:
    case = case_for()
    initial, learned = bits(case.initial), bits(case.learned)
    state = finish(make_method("retrain", ["rounds=1"]), case)
    assert same_bits(case.initial, initial)
    assert same_bits(case.learned, learned)
    assert changed_parts(initial, state.tensors)


def test_continuing_starts_from_the_learned_model_at_a_lower_rate(case_for: MakeCase) -> None:
    case = case_for()
    finish(make_method("continue", ["rounds=2", "rate=0.5"]), case)
    first = engine_of(case).crossed[0][0]
    assert all(tensor.equal(case.learned[name]) for name, tensor in first.tensors.items())
    was = case.config.learning
    for request, _ in engine_of(case).crossed:
        sent = request.settings["learning"]
        assert sent["l2u"]["generator_rate"] == was.l2u.generator_rate / 2
        assert sent["l2u"]["mid_rate"] == was.l2u.mid_rate / 2
        assert sent["supervised"]["rate"] == was.supervised.rate / 2
        assert request.settings["rate_scale"] == 1.0
    assert {request.round for request, _ in engine_of(case).crossed} == {1, 2}


def test_a_negligible_rate_stays_at_the_learned_model(case_for: MakeCase) -> None:
    case = case_for()
    state = finish(make_method("continue", ["rounds=1", "rate=1e-12"]), case)
    for name, tensor in state.tensors.items():
        assert bool((tensor - case.learned[name]).abs().max() < 1e-6), name


# Retraining from another start


def test_retraining_again_is_another_model_and_always_the_same(case_for: MakeCase) -> None:
    once = finish(make_method("retrain"), case_for())
    again, repeated = (finish(make_method("retrain-again"), case_for()) for _ in range(2))
    assert same_bits(again.tensors, repeated.tensors)
    assert changed_parts(once.tensors, again.tensors) >= {"E", "K", "V", "head"}
    assert (again.round, again.finished) == (once.round, once.finished)
    third = finish(make_method("retrain-again", ["again=2"]), case_for())
    assert not same_bits(third.tensors, again.tensors)
    assert not same_bits(third.tensors, once.tensors)
    assert same_bits(
        finish(make_method("retrain-again", ["again=0"]), case_for()).tensors, once.tensors
    )


def test_retraining_again_starts_elsewhere_and_takes_other_batches(case_for: MakeCase) -> None:
    one, other = case_for(), case_for()
    start = make_method("retrain-again").start(other)
    assert changed_parts(one.initial, start.tensors) >= {"E", "K", "V", "head"}
    assert start.tensors.keys() == one.initial.keys()
    finish(make_method("retrain", ["rounds=1"]), one)
    finish(make_method("retrain-again", ["rounds=1"]), other)
    seeds = [
        {request.settings["seed"] for request, _ in engine_of(case).crossed}
        for case in (one, other)
    ]
    assert seeds[0] == {0}
    assert len(seeds[1]) == 1
    assert seeds[0] != seeds[1]
    # It is paid for like any other, and the case keeps its own randomness.
    assert other.federation.ledger.total("retrain").flops > 0
    assert other.federation.seed == 0
