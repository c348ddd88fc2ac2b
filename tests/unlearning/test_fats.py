from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import changed_parts, same_bits
from forget_cases import MakeCase, engine_of, gone, repainted
from hypothesis import given
from hypothesis import strategies as st
from method_rounds import asked, copied, finish, learned_by, with_all

from foul.config.schema import FederationConfig
from foul.data import ClientData
from foul.federation.federation import QuorumError
from foul.federation.messages import ClientInfo, Reply, Request
from foul.unlearning import Case, ForgetRequest, MethodState
from foul.unlearning.fats import Fats, FatsLearning, FatsOptions, drawn

ROUNDS = 5
CLIENTS = [ClientInfo(f"client-{n}", "d", {}) for n in range(20)]


def fats(**options: Any) -> Fats:
    return Fats(FatsOptions.model_validate({"draws": 2, "steps": 2, "batch_size": 8} | options))


def ready(case: Case, method: Fats | None = None) -> Case:
    """The case after FATS' own learning stage."""
    return learned_by(method or fats(), replace(case, learned_rounds=ROUNDS))


def first_draws(case: Case) -> dict[str, int]:
    assert case.own is not None
    first: dict[str, int] = case.own.numbers["first"]
    return first


def requesting(case: Case, client: str) -> Case:
    return replace(case, request=ForgetRequest.parse(f"client:{client}", case.federation.clients))


def drawn_from(case: Case, number: int) -> str:
    """A client whose first draw is in this round or later."""
    return next(c for c, first in sorted(first_draws(case).items()) if first >= number)


# Draws


def test_draws_are_k_with_replacement_and_do_not_depend_on_the_order_of_clients() -> None:
    counts = [drawn(CLIENTS, 8, 0, number) for number in range(1, 50)]
    assert all(sum(count.values()) == 8 for count in counts)
    assert any(max(count.values()) > 1 for count in counts)
    assert counts == [drawn(CLIENTS[::-1], 8, 0, number) for number in range(1, 50)]


def test_rounds_seeds_and_generations_have_draws_of_their_own() -> None:
    draws = [drawn(CLIENTS, 8, *address) for address in ((0, 1), (0, 2), (1, 1), (0, 1, 1))]
    assert all(one != other for n, one in enumerate(draws) for other in draws[:n])
    assert drawn(CLIENTS, 8, 0, 1) == draws[0]


@pytest.mark.parametrize(("count", "forget"), [(1, 5), (4, 5), (4, 1)])
def test_a_round_hits_as_often_as_the_formula_says(count: int, forget: int) -> None:
    names = {client.id for client in CLIENTS[:forget]}
    rounds = 2000
    hits = sum(bool(names & drawn(CLIENTS, count, 0, n).keys()) for n in range(rounds))
    chance = 1 - (1 - forget / len(CLIENTS)) ** count
    assert hits / rounds == pytest.approx(chance, abs=4 * (chance * (1 - chance) / rounds) ** 0.5)


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 99))
def test_only_those_who_can_be_drawn_are(clients: int, count: int, number: int) -> None:
    draws = drawn(CLIENTS[:clients], count, 3, number)
    assert draws.keys() <= {client.id for client in CLIENTS[:clients]}
    assert sum(draws.values()) == count
    assert min(draws.values()) > 0


# Its own learning stage


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_a_round_is_the_mean_by_draws_not_by_samples(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...], norm: str
) -> None:
    uneven = [
        replace(client, train=client.train.subset(range(10 + 2 * n)))
        for n, client in enumerate(tiny_clients)
    ]
    case = replace(case_for(clients=uneven, norm=norm), learned_rounds=1)
    learning = FatsLearning(fats(draws=8).options)
    everyone = with_all(case)
    state = learning.start(everyone)
    record = learning.step(everyone, state)
    assert max(record["draws"].values()) > 1
    assert sum(record["draws"].values()) == 8
    crossed = engine_of(case).of_task("train")
    # Who is drawn twice trains once.
    assert sorted(record["draws"]) == [request.client for request, _ in crossed]
    for name, tensor in state.tensors.items():
        expected = case.initial[name].double()
        if name in crossed[0][1].tensors:
            for request, reply in crossed:
                expected += reply.tensors[name].double() * record["draws"][request.client] / 8
        torch.testing.assert_close(tensor.double(), expected, atol=1e-6, rtol=0)
    assert changed_parts(case.initial, state.tensors) == {"E", "K", "V", "head"}


def test_drawn_clients_take_exactly_so_many_steps_on_fresh_batches(case_for: MakeCase) -> None:
    case = ready(case_for(), fats(steps=7))
    for request, _ in engine_of(case).crossed:
        assert (request.settings["epochs"], request.settings["min_steps"]) == (0, 7)
        assert request.settings["fresh"] is True


def test_snapshots_are_the_models_before_first_draws_and_no_others(case_for: MakeCase) -> None:
    case = replace(case_for(), learned_rounds=ROUNDS)
    everyone = with_all(case)
    learning = FatsLearning(fats(draws=4).options)
    state, before = learning.start(everyone), {}
    first: dict[str, int] = {}
    while not state.finished:
        number = state.round + 1
        before[number] = copied(state.tensors)
        for client in learning.step(everyone, state)["draws"]:
            first.setdefault(client, number)
    assert state.numbers["first"] == first
    rounds = {name.split(".")[0] for name in state.extra}
    assert rounds == {str(number) for number in first.values()}
    assert len(rounds) < ROUNDS
    for name, tensor in state.extra.items():
        kept, own = name.split(".", 1)
        assert tensor.equal(before[int(kept)][own]), name
    assert same_bits(before[1], case.initial)


# Forgetting


def test_a_client_that_was_never_drawn_needs_nothing(case_for: MakeCase) -> None:
    case = ready(case_for())
    unused = next(c.id for c in case.federation.clients if c.id not in first_draws(case))
    engine_of(case).crossed.clear()
    state = finish(fats(), requesting(case, unused))
    assert case.own is not None
    assert same_bits(state.tensors, case.own.tensors)
    assert (state.round, state.finished) == (0, "none of them was ever drawn: nothing to do")
    assert asked(case) == set()
    assert case.federation.ledger.total("fats").bytes == 0


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_rounds_are_repeated_from_the_first_draw_on_without_the_forgotten(
    case_for: MakeCase, norm: str
) -> None:
    case = ready(case_for(norm=norm))
    client = drawn_from(case, 2)
    first = first_draws(case)[client]
    engine_of(case).crossed.clear()
    case = requesting(case, client)
    state = finish(fats(), case)
    crossed = engine_of(case).crossed
    assert state.round == ROUNDS - first + 1
    assert sorted({request.round for request, _ in crossed}) == list(range(first, ROUNDS + 1))
    assert client not in asked(case)
    assert state.finished == f"rounds {first} to {ROUNDS} repeated"
    # It starts from the model before that round.
    assert case.own is not None
    start = fats().start(case).tensors
    assert all(t.equal(start[n.removeprefix("model.")]) for n, t in crossed[0][0].tensors.items())
    assert start.keys() == case.initial.keys()
    assert not same_bits(state.tensors, case.own.tensors)


def test_several_clients_go_back_to_the_earliest_of_their_first_draws(case_for: MakeCase) -> None:
    case = ready(case_for())
    order = sorted(first_draws(case).items(), key=lambda pair: pair[1])
    assert order[0][1] < order[-1][1]
    both = ForgetRequest.parse(f"client:{order[-1][0]},{order[0][0]}", case.federation.clients)
    assert fats().start(replace(case, request=both)).numbers["first"] == order[0][1]


def test_from_the_first_round_on_it_is_retraining_with_the_same_draws(case_for: MakeCase) -> None:
    case = ready(case_for(), fats(draws=8))
    client = next(c for c, first in sorted(first_draws(case).items()) if first == 1)
    case = requesting(case, client)
    state = finish(fats(draws=8), case)
    # Retraining, typed again: draws of the second generation, means by draws.
    other = case_for()
    tensors = copied(other.initial)
    known = {c.id: c for c in other.federation.clients}
    for number in range(1, ROUNDS + 1):
        draws = drawn(case.request.retain, 8, 0, number, 1)
        sums: dict[str, Any] = {}
        learning = FatsLearning(fats(draws=1).options)
        for name, count in draws.items():
            one = ForgetRequest("", (), (known[name],))
            single = MethodState(dict(tensors), numbers={"first": {}}, round=number - 1)
            learning.step(replace(other, request=one), single)
            for key, tensor in single.tensors.items():
                sums[key] = sums.get(key, 0) + count * (tensor.double() - tensors[key].double())
        tensors = {n: (t.double() + sums[n] / 8).to(t.dtype) for n, t in tensors.items()}
    for key, tensor in state.tensors.items():
        torch.testing.assert_close(tensor, tensors[key], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_the_pixels_of_the_forgotten_do_not_matter_bit_for_bit(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...], norm: str
) -> None:
    cases = [
        ready(case_for(clients=clients, norm=norm), fats(draws=1))
        for clients in (tiny_clients, repainted(tiny_clients, "east"))
    ]
    # They were drawn, and the learned models differ.
    assert any(client.startswith("east") for client in first_draws(cases[0]))
    assert not same_bits(cases[0].learned, cases[1].learned)
    states = [finish(fats(draws=1), case) for case in cases]
    assert states[0].round > 0
    assert same_bits(states[0].tensors, states[1].tensors)


def test_the_order_of_clients_does_not_matter(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    states = [
        finish(fats(), ready(case_for(clients=clients)))
        for clients in (tiny_clients, tiny_clients[::-1])
    ]
    assert same_bits(states[0].tensors, states[1].tensors)


# When something goes wrong


def test_who_is_away_was_drawn_nonetheless_and_the_others_make_the_mean(
    case_for: MakeCase,
) -> None:
    def nan(request: Request, reply: Reply) -> Reply:
        if request.client.startswith("east"):
            broken = {n: torch.full_like(t, float("nan")) for n, t in reply.tensors.items()}
            return replace(reply, tensors=broken)
        return reply

    lenient = FederationConfig(quorum=0.01)
    case = ready(case_for(meddle=nan, federation=lenient), fats(draws=8))
    assert any(client.startswith("east") for client in first_draws(case))
    assert all(bool(tensor.isfinite().all()) for tensor in case.learned.values())


def test_a_failed_round_leaves_the_state_as_it_was(case_for: MakeCase) -> None:
    strict = FederationConfig(quorum=1.0)
    case = case_for(meddle=gone("", "train"), federation=strict)
    everyone = with_all(case)
    learning = FatsLearning(fats().options)
    state = learning.start(everyone)
    with pytest.raises(QuorumError):
        learning.step(everyone, state)
    assert same_bits(state.tensors, case.initial)
    assert (state.round, state.extra, state.numbers) == (0, {}, {"first": {}})
