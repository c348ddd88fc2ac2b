import math

import pytest
import torch
from factories import same_bits
from forget_cases import MakeCase, engine_of, repainted
from foul_rounds import asked, foul
from hypothesis import given
from hypothesis import strategies as st

from foul.client.compress import decode, encode
from foul.data import ClientData, to_float
from foul.federation.messages import Tensors, payload_bytes
from foul.models import DEPLOYED, DisentangledNet, build_network, part_of
from foul.unlearning import Case, FoulOptions
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.standin import StandIn, on_the_line

OPTIONS = FoulOptions(batch_size=8, standin_rounds=2, standin_epochs=0.5)


@st.composite
def counts(draw: st.DrawFn, least: int = 1, most: int = 10**6) -> Counts:
    samples = draw(st.integers(least, most))
    return Counts(draw(st.integers(0, samples)), samples)


def logit(share: float) -> float:
    return math.log(share / (1 - share))


def smoothed(of: Counts) -> float:
    """The share of correct answers with half a sample more of either kind."""
    return (of.correct + 0.5) / (of.samples + 1)


MANY = 10**9
"""So many classes that chance is nothing."""


@given(counts(), counts(), counts(), st.floats(-1, 1), st.floats(0, 0.6), st.integers(2, 100))
def test_the_estimate_is_on_the_line_or_at_chance(
    forget: Counts, retain: Counts, learned: Counts, offset: float, slope: float, classes: int
) -> None:
    estimate = on_the_line(forget, retain, learned, offset, slope, classes)
    # However extreme the counts are.
    assert 0 < estimate < 1
    gain = logit(smoothed(learned)) - logit(smoothed(retain))
    expected = max(
        logit(smoothed(forget)) + offset + slope * gain,
        math.log(1 / (classes - 1)),
    )
    assert logit(estimate) == pytest.approx(expected, abs=1e-6, rel=1e-2)


def test_an_estimate_worked_out_by_hand() -> None:
    """Odds 1 of the stand-in; retain odds of 9 instead of 1, at slope 1/2: 3 to 1; an offset of
    log 3 makes it 9 to 1."""
    counts = Counts(50, 100), Counts(50, 100), Counts(90, 100)
    odds = math.sqrt(90.5 / 10.5)
    assert on_the_line(*counts, 0.0, 0.5, MANY) == pytest.approx(odds / (1 + odds))
    assert on_the_line(*counts, 0.0, 0.5, MANY) == pytest.approx(0.75, abs=0.01)
    assert on_the_line(*counts, math.log(3), 0.5, MANY) == pytest.approx(0.9, abs=0.01)


@given(counts(), counts(), st.floats(0, 2), st.booleans())
def test_without_held_out_samples_it_is_the_stand_ins_own_accuracy(
    forget: Counts, other: Counts, slope: float, retain: bool
) -> None:
    pair = (Counts(), other) if retain else (other, Counts())
    assert on_the_line(forget, *pair, 0.45, slope, MANY) == pytest.approx(smoothed(forget))


@given(counts(), counts(), counts(), st.floats(-6, 6))
def test_an_estimate_has_a_limit(
    forget: Counts, retain: Counts, learned: Counts, limit: float
) -> None:
    free = on_the_line(forget, retain, learned, 0.45, 0.4, 10)
    bound = on_the_line(forget, retain, learned, 0.45, 0.4, 10, limit)
    # Chance stands all the same.
    assert bound == pytest.approx(min(free, max(0.1, 1 / (1 + math.exp(-limit)))))


def train(case: Case) -> tuple[StandIn, Tensors]:
    standin = StandIn(case, OPTIONS)
    return standin, standin.trained("standin")


def test_it_starts_from_scratch_with_what_is_deployed(case_for: MakeCase) -> None:
    case = case_for()
    start = StandIn(case, OPTIONS).fresh()
    assert {part_of(name) for name in start} == set(DEPLOYED)
    # Drawn from the federation's seed alone, whatever was learned.
    fresh = build_network(StandIn(case, OPTIONS).model, 3, 16, 0).state_dict()
    assert same_bits(start, {name: fresh[name] for name in start})


def test_it_is_blind_to_what_is_forgotten(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    cases = {
        domain: case_for(clients=repainted(tiny_clients, domain)) for domain in ("", "east", "west")
    }
    states = {domain: train(case)[1] for domain, case in cases.items()}
    assert asked(cases[""]) == {client.id for client in cases[""].request.retain}
    assert {request.task for request, _ in engine_of(cases[""]).crossed} == {"learn"}
    assert same_bits(states[""], states["east"])
    # The test would notice: a retain domain's pixels do matter.
    assert not same_bits(states[""], states["west"])
    assert not same_bits(states[""], StandIn(cases[""], OPTIONS).fresh())


def test_inside_foul_too_no_forget_client_trains_it(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    trained = []
    for clients in (tiny_clients, repainted(tiny_clients, "east")):
        case = case_for(clients=clients)
        method = foul(rounds=2, control=True, standin_rounds=2, standin_epochs=0.5)
        method.step(case, method.start(case))
        retain = {client.id for client in case.request.retain}
        assert asked(case, "learn") == retain
        assert asked(case, "evaluate") == retain | case.request.forget_ids
        scored = [request.tensors for request, _ in engine_of(case).of_task("evaluate")]
        assert all(same_bits(tensors, scored[0]) for tensors in scored)
        trained.append(scored[0])
    assert same_bits(*trained)


def test_it_travels_in_half_the_bytes_and_is_counted(case_for: MakeCase) -> None:
    case = case_for()
    standin, model = train(case)
    standin.scores(model, "standin")
    crossed = engine_of(case).crossed
    cost = case.federation.ledger.total("standin")
    assert cost.bytes_down == sum(payload_bytes(r.tensors, r.settings) for r, _ in crossed) > 0
    assert cost.bytes_up == sum(payload_bytes(r.tensors, r.numbers) for _, r in crossed) > 0
    assert cost.flops_client == sum(reply.flops for _, reply in crossed) > 0
    for request, reply in crossed:
        for tensor in (*request.tensors.values(), *reply.tensors.values()):
            assert tensor.dtype == torch.bfloat16


def test_scores_are_its_answers_to_all_forget_and_held_out_retain_samples(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    case = case_for("domain:east,west")
    standin, model = train(case)
    domains, retain = standin.scores(model, "standin")
    net = DisentangledNet(standin.model, 3, 16)
    sent = decode(encode(model, "bfloat16"))
    net.load_state_dict(net.state_dict() | sent)

    def correct(clients: list[ClientData], *splits: str) -> Counts:
        total = Counts()
        for client in clients:
            for split in splits:
                samples = getattr(client, split)
                images, labels = samples.batch(torch.arange(len(samples)))
                with torch.no_grad():
                    hits = int((net.eval()(to_float(images)).argmax(1) == labels).sum())
                total += Counts(hits, len(samples))
        return total

    of = {d: [c for c in tiny_clients if c.domain == d] for d in ("east", "west", "north", "south")}
    assert domains == {d: correct(of[d], "train", "validation") for d in ("east", "west")}
    assert retain == correct(of["north"] + of["south"], "validation")
    assert (domains["east"].samples, retain.samples) == (60, 12)
