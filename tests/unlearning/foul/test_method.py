import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from factories import MakeNet, changed_parts, same_bits
from forget_cases import MakeCase, engine_of, gone, make_case, scope_of
from foul_rounds import asked, close, foul, mean_of, of_role, rounds, weight_of

from foul.client.compress import decode, encode
from foul.client.symmetric import unpack
from foul.config.schema import FederationConfig
from foul.data import ClientData, to_float
from foul.evaluation.accuracy import evaluate
from foul.federation.federation import Federation, QuorumError
from foul.federation.messages import (
    Reply,
    Request,
    Tensors,
    added,
    key_of,
    payload_bytes,
    take_group,
)
from foul.federation.processes import ProcessEngine
from foul.unlearning import Case, MethodState
from foul.unlearning.foul.aside import movable, pooled_moments
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.measured import pooled
from foul.unlearning.foul.radius import POINTS
from foul.unlearning.foul.standin import StandIn
from foul.unlearning.method import LearnedScores

STEERED: dict[str, Any] = {"control": True, "standin_rounds": 2, "standin_epochs": 1.0}
WEAKEST: dict[str, Any] = {"forget": "weakest", "aside": 0.01}
ASIDE: dict[str, Any] = STEERED | WEAKEST | {"precision": "int8"}


def travelling(case: Case, *parts: str) -> Tensors:
    """What of these parts is trained: no statistics, and not V's log variance."""
    return {
        name: tensor
        for name, tensor in scope_of(case.learned, *parts).items()
        if name not in case.buffers and not name.startswith("V.logvar.")
    }


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize("scope", [("V", "head"), ("V",)])
def test_only_the_scope_changes_and_travels(
    case_for: MakeCase, norm: str, scope: tuple[str, ...]
) -> None:
    case = case_for(norm=norm)
    state, _ = rounds(case, foul(rounds=2, scope=scope))
    assert changed_parts(case.learned, state.tensors) == set(scope)
    for name in case.buffers:
        assert state.tensors[name].equal(case.learned[name])
    expected = travelling(case, *scope).keys()
    for request, reply in engine_of(case).of_task("unlearn"):
        assert take_group(request.tensors, "scope").keys() == reply.tensors.keys() == expected


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_what_clients_say_of_the_first_model_is_true_of_the_learned_one(
    case_for: MakeCase, norm: str
) -> None:
    """With BatchNorm too: V's running statistics must have reached the clients."""
    case = case_for(norm=norm)
    _, records = rounds(case, foul(forget_from="round"), 1)
    scores = evaluate(case.federation, case.learned, splits=("train", "validation"))
    told = {"forget": ("train", "validation"), "retain": ("validation",)}
    for role, clients in (("forget", case.request.forget), ("retain", case.request.retain)):
        for split in told[role]:
            total = scores.total(split, [client.id for client in clients])
            assert records[0][f"{role}_{split}"] == total.correct / total.samples
    # Nobody asks how well retain clients' training data is answered: it would not be used.
    assert "retain_train" not in records[0]


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_radius_the_update_is_the_retain_mean(
    case_for: MakeCase, weighted: bool, fairness: float
) -> None:
    def heavy(request: Request, reply: Reply) -> Reply:
        if weighted and request.task == "unlearn" and request.client == "north-0":
            return replace(reply, numbers={**reply.numbers, "samples": 200})
        return reply

    case = case_for(meddle=heavy)
    state, _ = rounds(case, foul(kappa=0, normalise="none", fairness=fairness), 1)
    replies = engine_of(case).of_task("unlearn")
    assert {request.client for request, _ in replies} == {c.id for c in case.federation.clients}
    mean = mean_of(of_role(case, replies, forget=False), fairness)
    close({n: state.tensors[n] for n in mean}, {n: case.learned[n] + mean[n] for n in mean})


@pytest.mark.parametrize("matching", [True, False])
def test_where_the_data_is_not_fitted_the_retain_clients_last_step_is_made_again_in_part(
    case_for: MakeCase, matching: bool
) -> None:
    """v <- m v + mean of the deltas; forget clients start where v leads."""
    case = case_for()
    plain: dict[str, Any] = {"kappa": 0, "normalise": "none", "extra": 0, "unfit": 0.0}
    state, _ = rounds(case, foul(rounds=3, unfit_momentum=0.5, matching=matching, **plain))
    pairs = engine_of(case).of_task("unlearn")
    scope, step = travelling(case, "V", "head"), dict[str, torch.Tensor]()
    for number in (1, 2, 3):
        now = [pair for pair in pairs if pair[0].round == number]
        mean = mean_of(of_role(case, now, forget=False))
        step = {n: t + 0.5 * step[n] if step else t for n, t in mean.items()}
        end = {n: t.double() + step[n] for n, t in scope.items()}
        for request, _ in of_role(case, now, forget=True):
            close(take_group(request.tensors, "scope"), end)
        scope = end
    close({n: state.tensors[n] for n in scope}, scope)


@pytest.mark.parametrize("loss", [0.0, -1.0, float("nan")])
def test_a_round_bears_whatever_retain_clients_say_they_lost(
    case_for: MakeCase, loss: float
) -> None:
    def says(request: Request, reply: Reply) -> Reply:
        if request.task == "unlearn" and not request.client.startswith("east"):
            return replace(reply, numbers={**reply.numbers, "loss": loss})
        return reply

    case = case_for("domain:east", meddle=says)
    state, _ = rounds(case, foul(normalise="none"), 1)
    moved, expected = case_for("domain:east"), foul(normalise="none", fairness=0.0)
    # Nobody lost more than another: the same as by samples.
    close(state.tensors, rounds(moved, expected, 1)[0].tensors, 1e-5)


def test_a_causal_head_does_not_notice(case_for: MakeCase, make_net: MakeNet) -> None:
    """Why such a model is refused (decision 1): no logit changes by a single bit."""
    case = case_for()
    state, _ = rounds(case, foul(rounds=2))
    images = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    for head, same in (("causal", True), ("joint", False)):
        logits = []
        for tensors in (case.learned, state.tensors):
            net = make_net(norm="group", head=head)
            net.load_state_dict(tensors)
            with torch.no_grad():
                logits.append(net.eval()(images))
        assert logits[0].equal(logits[1]) == same


def test_stage_one_asks_no_forget_client(case_for: MakeCase) -> None:
    case = case_for()
    state, records = rounds(case, foul(rounds=2, matching=False, control=True, normalise="none"))
    retain = {client.id for client in case.request.retain}
    assert asked(case, "unlearn") == retain
    assert asked(case, "probe") == asked(case, "learn") == asked(case, "evaluate") == set()
    assert state.round == len(records) == 2
    assert state.finished == "all 2 rounds done"
    # FedAvg: each round adds the mean by numbers of samples.
    expected = travelling(case, "V", "head")
    for number in (1, 2):
        mean = mean_of([p for p in engine_of(case).of_task("unlearn") if p[0].round == number])
        expected = {n: t.double() + mean[n] for n, t in expected.items()}
    close({n: state.tensors[n] for n in expected}, expected)


def test_matching_leans_towards_forgetting(case_for: MakeCase) -> None:
    """The update goes further along what the forget clients send than the retain mean does."""
    case = case_for()
    _, records = rounds(case, foul(kappa=2.0), 1)
    plain = case_for()
    _, without = rounds(plain, foul(kappa=0), 1)
    for client in case.request.forget_ids:
        assert records[0]["matching"]["cosines"][client] > without[0]["matching"]["cosines"][client]
    assert records[0]["matching"]["flag"] == "ok"
    assert records[0]["matching"]["gap"] < 1e-6


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"forget": "negated", "anchor": "all", "forget_from": "round"},
        STEERED,
        ASIDE | {"precision": "float32"},
    ],
)
def test_the_order_of_clients_does_not_matter(
    case_for: MakeCase, options: dict[str, object]
) -> None:
    one, other = case_for(), case_for()
    turned = replace(
        other.request, forget=other.request.forget[::-1], retain=other.request.retain[::-1]
    )
    states = [
        rounds(case, foul(rounds=2, **options))[0] for case in (one, replace(other, request=turned))
    ]
    close(states[0].tensors, states[1].tensors)


@pytest.mark.parametrize("forget", ["client:east-0", "client:east-0,west-1", "domain:east,west"])
@pytest.mark.parametrize("values", [{}, WEAKEST])
def test_one_or_many_are_forgotten(
    case_for: MakeCase, forget: str, values: dict[str, object]
) -> None:
    case = case_for(forget)
    state, records = rounds(case, foul(rounds=2, **values))
    assert state.round == 2
    for record in records:
        assert record["answered"] == 8
        assert all(np.isfinite(list(record["matching"]["weights"].values())))
    assert all(bool(torch.isfinite(t).all()) for t in state.tensors.values())


def test_a_retain_client_that_is_away_is_left_out(case_for: MakeCase) -> None:
    case = case_for(meddle=gone("north-0"))
    state, records = rounds(case, foul(rounds=2))
    assert state.round == 2
    for record in records:
        assert record["failures"] == {"north-0": "gone"}
        assert record["answered"] == 7
        assert "north-0" not in record["matching"]["weights"]


@pytest.mark.parametrize("values", [{}, WEAKEST, WEAKEST | {"precision": "int8"}])
def test_simulated_dropout_is_tolerated(case_for: MakeCase, values: dict[str, object]) -> None:
    case = case_for(federation=FederationConfig(dropout=0.3, quorum=0.1))
    state, records = rounds(case, foul(rounds=3, **values))
    assert state.round == 3
    assert any(record["failures"] for record in records)


def test_who_missed_the_frozen_parts_gets_them_later(case_for: MakeCase) -> None:
    def late(request: Request, reply: Reply) -> Reply:
        if (request.task, request.client, request.round) in {
            ("freeze", "north-0", 0),
            ("freeze", "east-1", 0),
            ("freeze", "east-1", 1),
        }:
            return Reply(request.client, error="away")
        return reply

    case = case_for(meddle=late)
    state, _ = rounds(case, foul(rounds=3))
    assert state.round == 3
    again = [(r.client, r.round) for r, _ in engine_of(case).of_task("freeze") if r.round]
    assert again == [("east-1", 1), ("north-0", 1), ("east-1", 2)]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_delta_that_is_not_finite_is_named_and_left_out(
    case_for: MakeCase, precision: str
) -> None:
    def broken(request: Request, reply: Reply) -> Reply:
        if request.task == "unlearn" and request.client == "north-0":
            tensors = {
                n: t * float("nan") if t.is_floating_point() else t
                for n, t in reply.tensors.items()
            }
            return replace(reply, tensors=tensors)
        return reply

    case, without = case_for(meddle=broken), case_for(meddle=gone("north-0"))
    state, records = rounds(case, foul(rounds=1, precision=precision))
    assert "NaN" in records[0]["failures"]["north-0"]
    expected, _ = rounds(without, foul(rounds=1, precision=precision))
    assert same_bits(state.tensors, expected.tensors)


def test_a_delta_of_another_shape_is_named_and_left_out(case_for: MakeCase) -> None:
    def odd(request: Request, reply: Reply) -> Reply:
        if request.task == "unlearn" and request.client == "north-0":
            return replace(reply, tensors={**reply.tensors, "head.bias": torch.zeros(7)})
        return reply

    _, records = rounds(case_for(meddle=odd), foul(rounds=1))
    assert "'head.bias' has shape (7,)" in records[0]["failures"]["north-0"]


def test_without_any_forget_client_there_is_an_error_and_no_step(case_for: MakeCase) -> None:
    case, method = case_for(meddle=gone("east")), foul()
    before = {name: t.clone() for name, t in case.learned.items()}
    state = method.start(case)
    with pytest.raises(QuorumError, match=r"0 of 2 clients answered.*east-0: gone"):
        method.step(case, state)
    assert same_bits(state.tensors, before)
    assert same_bits(case.learned, before)


def test_a_step_that_costs_the_retain_clients_too_much_is_taken_back(case_for: MakeCase) -> None:
    options: dict[str, object] = {"rounds": 9, "delta": 0.0, "rate": 5.0}
    state, _ = rounds(case_for(), foul(**options))
    assert "cost retain clients" in state.finished
    before, _ = rounds(case_for(), foul(**options), state.round - 2)
    assert same_bits(state.tensors, before.tensors)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8"])
def test_the_ledger_is_what_crossed(case_for: MakeCase, precision: str) -> None:
    case = case_for()
    rounds(case, foul(rounds=2, precision=precision, **STEERED))
    crossed = engine_of(case).crossed
    cost = case.federation.ledger.total("foul")
    assert cost.bytes_down == sum(payload_bytes(r.tensors, r.settings) for r, _ in crossed)
    assert cost.bytes_up == sum(payload_bytes(r.tensors, r.numbers) for _, r in crossed)
    tasks = {request.task for request, _ in crossed}
    assert tasks == {"freeze", "learn", "evaluate", "unlearn", "probe"}
    numel = sum(t.numel() for t in travelling(case, "V", "head").values())
    width = {"float32": 4, "int8": 1}.get(precision, 2)
    short = 4 * len(travelling(case, "V", "head")) + numel if precision == "int8" else numel * width
    for request, reply in engine_of(case).of_task("unlearn"):
        # 8 bits are for moves; weights need 16, and go down in the first round only.
        first = request.round == 1 or precision != "int8"
        scope, step = (
            sum(t.nbytes for t in take_group(request.tensors, group).values())
            for group in ("scope", "step")
        )
        assert (scope, step) == ((numel * max(2, width), 0) if first else (0, short))
        assert sum(t.nbytes for t in reply.tensors.values()) == short
    for request, _ in engine_of(case).of_task("probe"):
        # The centre is where forget clients started from: in 8 bits they hold it.
        whole = 0 if precision == "int8" else numel * width
        assert sum(t.nbytes for t in request.tensors.values()) == short + whole


def test_with_8_bits_the_server_makes_the_steps_that_clients_make(case_for: MakeCase) -> None:
    case = case_for()
    state, _ = rounds(case, foul(rounds=3, precision="int8", **STEERED))
    scope = {n: case.learned[n] for n in travelling(case, "V", "head")}
    for number in (2, 3):
        pairs = [p for p in engine_of(case).of_task("unlearn") if p[0].round == number]
        steps = [
            decode(take_group(request.tensors, "step"))
            for request, _ in of_role(case, pairs, forget=False)
        ]
        assert all(same_bits(step, steps[0]) for step in steps)
        scope = added(scope, steps[0])
    # Clients hold the same, but for the first round's rounding to 16 bits; forget clients hold
    # what the server counts with, to the bit.
    store = engine_of(case)._worker._features
    held = {
        client: store.kept(f"{state.numbers['session']}-{client}", "scope", 3) or {}
        for client in ("north-0", "east-0")
    }
    close(held["north-0"], scope, 2**-7)
    assert same_bits(held["east-0"], take_group(state.extra, "start"))
    scope = added(scope, decode(take_group(state.extra, "step")))
    assert same_bits({n: state.tensors[n] for n in scope}, scope)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_with_8_bits_forget_clients_start_where_the_retain_mean_leads(
    case_for: MakeCase, number: int
) -> None:
    case = case_for()
    state, _ = rounds(case, foul(rounds=number, precision="int8", normalise="none", **STEERED))
    pairs = [p for p in engine_of(case).of_task("unlearn") if p[0].round == number]
    replies = [reply for _, reply in of_role(case, pairs, forget=False)]
    total = sum(weight_of(reply) for reply in replies)
    shares = [(weight_of(reply) / total, decode(reply.tensors)) for reply in replies]
    last = decode(take_group(state.extra, "step"))
    start = take_group(state.extra, "start")
    for name, tensor in start.items():
        began = state.tensors[name] - last[name]
        mean = torch.stack([share * delta[name] for share, delta in shares]).sum(0)
        # But for a step's 8 bits, or a weight's 16 in the first round.
        torch.testing.assert_close(tensor, began + mean, rtol=2**-8, atol=1e-3)
        assert (tensor - began).abs().max() > 0


def test_weights_go_down_in_16_bits_if_asked(case_for: MakeCase) -> None:
    case = case_for()
    rounds(case, foul(rounds=2, precision="int8", downwards="scope", **STEERED))
    for request, _ in engine_of(case).of_task("unlearn"):
        assert {name.split(".")[0] for name in request.tensors} == {"scope"}
        assert {tensor.dtype for tensor in request.tensors.values()} == {torch.bfloat16}
    for request, _ in engine_of(case).of_task("probe"):
        assert {name.split(".")[0] for name in request.tensors} == {"centre", "way"}


def test_who_was_away_is_sent_the_scope_again(case_for: MakeCase) -> None:
    """A retain and a forget client that miss the second of four rounds."""

    def away(request: Request, reply: Reply) -> Reply:
        late = request.client in ("north-0", "east-0")
        if (late, request.task, request.round) == (True, "unlearn", 2):
            return Reply(request.client, error="gone")
        return reply

    case = case_for(meddle=away)
    _, records = rounds(case, foul(rounds=4, precision="int8", **STEERED))
    assert [sorted(record["failures"]) for record in records] == [[], ["east-0", "north-0"], [], []]
    for request, _ in engine_of(case).of_task("unlearn"):
        again = request.client in ("north-0", "east-0") and request.round == 3
        whole = "scope" if request.round == 1 or again else "step"
        groups = {name.split(".")[0] for name in request.tensors}
        assert groups == {whole}, (request.client, request.round)


def test_keys_tell_tensors_apart() -> None:
    one = {"a": torch.ones(2), "b": torch.zeros(2)}
    assert key_of(one) == key_of(dict(reversed(one.items())))
    assert key_of(one) != key_of({"a": torch.ones(2), "b": torch.ones(2)})
    assert key_of(one) != key_of({"a": torch.ones(2), "c": torch.zeros(2)})


# Where forget clients start


def joint_step(case: Case, number: int, rate: float, normalised: bool) -> Tensors:
    """The retain clients' mean delta of a round, each first brought to their mean length."""
    pairs = [p for p in engine_of(case).of_task("unlearn") if p[0].round == number]
    deltas, norms, weights = [], [], []
    for _, reply in of_role(case, pairs, forget=False):
        deltas.append({n: t.double() for n, t in reply.tensors.items()})
        norms.append(sum(float(t.square().sum()) for t in deltas[-1].values()) ** 0.5)
        weights.append(weight_of(reply))
    length = sum(norms) / len(norms)
    factors = [
        rate * weight / sum(weights) * (length / norm if normalised else 1)
        for weight, norm in zip(weights, norms, strict=True)
    ]
    return {
        name: sum((f * d[name] for f, d in zip(factors, deltas, strict=True)), torch.zeros(()))
        for name in deltas[0]
    }


@pytest.mark.parametrize("normalise", ["none", "retain_mean"])
def test_forget_clients_start_from_where_the_retain_mean_leads(
    case_for: MakeCase, normalise: str
) -> None:
    case = case_for()
    rounds(case, foul(rounds=2, normalise=normalise, server_rate=0.5))
    pairs = engine_of(case).of_task("unlearn")
    for number in (1, 2):
        sent = {
            forget: [
                take_group(r.tensors, "scope")
                for r, _ in of_role(case, pairs, forget)
                if r.round == number
            ]
            for forget in (True, False)
        }
        scope = sent[False][0]
        step = joint_step(case, number, 0.5, normalise == "retain_mean")
        for tensors in sent[True]:
            close(tensors, {n: t.double() + step[n] for n, t in scope.items()})
        assert float(max(t.abs().max() for t in step.values())) > 1e-4


def test_in_the_papers_form_all_start_from_the_model_of_the_round(case_for: MakeCase) -> None:
    case = case_for()
    rounds(case, foul(rounds=2, forget_from="round"))
    for number in (1, 2):
        sent = [r.tensors for r, _ in engine_of(case).of_task("unlearn") if r.round == number]
        assert len(sent) == 8
        assert all(same_bits(tensors, sent[0]) for tensors in sent)


@pytest.mark.parametrize(("unfit", "later", "more"), [(0.0, 4.0, 2), (100.0, 1.0, 0)])
def test_clients_work_longer_and_for_more_rounds_where_the_training_data_is_not_fitted(
    case_for: MakeCase, unfit: float, later: float, more: int
) -> None:
    case = case_for()
    chosen = foul(
        rounds=3, epochs=1.0, rate=0.25, unfit_epochs=4.0, unfit_rate=1.0, extra=2, unfit=unfit
    )
    rounds(case, chosen)
    pairs = engine_of(case).of_task("unlearn")
    work = {r.round: (r.settings["epochs"], r.settings["rate"]) for r, _ in pairs}
    assert work == dict.fromkeys(range(1, 4 + more), (later, 0.25 * later))
    # The rate falls over all of them.
    scales = {r.round: r.settings["rate_scale"] for r, _ in pairs}
    assert scales[3 + more] == pytest.approx(chosen.options.final_rate)
    assert scales[2 + more] > scales[3 + more]


@pytest.mark.parametrize(("sure", "epochs"), [(100.0, 3.0), (0.0, 1.0)])
def test_clients_work_longer_in_shorter_steps_where_the_learned_model_is_sure(
    case_for: MakeCase, sure: float, epochs: float
) -> None:
    case = case_for()
    _, records = rounds(case, foul(rounds=2, epochs=1.0, rate=0.25, sure_epochs=3.0, sure=sure))
    pairs = engine_of(case).of_task("unlearn")
    told = {tuple(r.settings[k] for k in ("epochs", "rate", "rate_epochs")) for r, _ in pairs}
    assert told == {(epochs, 0.25, 1.0)}
    assert {record["fit"] for record in records} == {"sure" if sure else "fitted"}


@pytest.mark.parametrize(("request_text", "level"), [("client:east-0", 0.5), ("domain:east", 0.0)])
def test_single_clients_level_where_training_data_is_known_by_heart(
    case_for: MakeCase, request_text: str, level: float
) -> None:
    case = case_for(request_text)
    clients = case.federation.clients
    by_heart = LearnedScores({c.id: 0.1 for c in clients}, {c.id: 0.5 for c in clients})
    values = {"overfit": 0.2, "overfit_level": 0.5, **STEERED}
    _, records = rounds(replace(case, scores=by_heart), foul(rounds=1, **values))
    assert records[0]["fit"] == "overfit"
    pairs = engine_of(case).of_task("unlearn")
    assert {r.settings["level"] for r, _ in of_role(case, pairs, True)} == {level}
    assert {r.settings["level"] for r, _ in of_role(case, pairs, False)} == {0.0}


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ({"forget": "weakest", "level": 0.25}, 0.25),
        ({"forget": "weakest", "sure": 100.0, "level": 0.25, "sure_level": 0.5}, 0.5),
        ({"forget": "bounded", "level": 0.25}, 0.0),
        ({"forget": "negated", "level": 0.25}, 0.0),
    ],
)
def test_forget_clients_alone_level_where_they_are_told_to(
    case_for: MakeCase, values: dict[str, object], level: float
) -> None:
    case = case_for()
    rounds(case, foul(rounds=1, **values))
    pairs = engine_of(case).of_task("unlearn")
    assert {r.settings["level"] for r, _ in of_role(case, pairs, True)} == {level}
    assert {r.settings["level"] for r, _ in of_role(case, pairs, False)} == {0.0}


def test_where_the_data_is_not_fitted_the_radius_is_smaller(case_for: MakeCase) -> None:
    largest = {}
    for unfit in (0.0, 100.0):
        chosen = foul(rounds=2, extra=0, target=0.0, unfit=unfit, unfit_kappa=0.25, **STEERED)
        _, records = rounds(case_for(), chosen)
        largest[unfit] = max(record["radius"] for record in records)
    assert 0 < largest[0.0] <= 0.25 < largest[100.0]


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({"forget": "weakest"}, "weakest"),
        ({"forget": "weakest", "unfit": 0.0}, "weakest"),
        ({"forget": "weakest", "unfit": 0.0, "unfit_forget": "bounded"}, "bounded"),
        ({"forget": "bounded"}, "bounded"),
        ({"forget": "negated"}, "cross_entropy"),
        ({"forget": "negated", "unfit": 0.0}, "cross_entropy"),
    ],
)
def test_where_the_data_is_not_fitted_forget_clients_may_descend_another_loss(
    case_for: MakeCase, values: dict[str, object], loss: str
) -> None:
    case = case_for()
    rounds(case, foul(rounds=1, **values))
    pairs = engine_of(case).of_task("unlearn")
    assert {r.settings["loss"] for r, _ in of_role(case, pairs, True)} == {loss}
    assert {r.settings["loss"] for r, _ in of_role(case, pairs, False)} == {"cross_entropy"}


def test_where_the_data_is_not_fitted_answers_are_brought_further_down(
    case_for: MakeCase,
) -> None:
    for unfit, depth in ((0.0, 5.0), (100.0, 2.0)):
        case = case_for()
        rounds(case, foul(rounds=1, forget="weakest", unfit=unfit, depth=2.0, unfit_depth=5.0))
        told = engine_of(case).of_task("unlearn")
        assert {request.settings["depth"] for request, _ in told} == {depth}


def test_as_many_answers_are_brought_down_as_the_last_target_says(case_for: MakeCase) -> None:
    case = case_for()
    chosen = foul(rounds=3, forget="weakest", depth=0.5, control=True, indistinct=False)
    _, records = rounds(case, chosen)
    told = {
        request.round: (request.settings["aim"], request.settings["depth"])
        for request, _ in of_role(case, engine_of(case).of_task("unlearn"), True)
    }
    # In the first round nothing is known of where to go: all of them.
    targets = [0.0, *(record["target"] for record in records)]
    assert told == {number: (targets[number - 1], 0.5) for number in (1, 2, 3)}
    known = case_for()
    rounds(known, foul(rounds=1, forget="weakest", target=0.75, control=True))
    pairs = of_role(known, engine_of(known).of_task("unlearn"), True)
    assert {request.settings["aim"] for request, _ in pairs} == {0.75}


@pytest.mark.parametrize(("flat", "later"), [(0.0, "bounded"), (1.0, "unlikelihood")])
def test_where_the_bounded_loss_is_flat_forget_clients_descend_a_steeper_one(
    case_for: MakeCase, flat: float, later: str
) -> None:
    case = case_for()
    chosen = foul(rounds=2, rate=0.1, flat=flat, steep_rate=0.5, target=0.0, **STEERED)
    state, _ = rounds(case, chosen)
    assert state.numbers["flat"] is (later == "unlikelihood")
    for number, loss in ((1, "bounded"), (2, later)):
        pairs = [p for p in engine_of(case).of_task("unlearn") if p[0].round == number]
        for request, _ in of_role(case, pairs, True):
            slower = 0.5 if loss == "unlikelihood" else 1.0
            assert request.settings["loss"] == loss
            assert request.settings["rate"] == pytest.approx(0.1 * slower)
        for request, _ in of_role(case, pairs, False):
            assert (request.settings["loss"], request.settings["rate"]) == ("cross_entropy", 0.1)


# Steering


@pytest.mark.parametrize("kappa", [0.0, 2.0])
def test_the_step_lies_between_the_centre_and_kappa(case_for: MakeCase, kappa: float) -> None:
    """The share of the way is what the record says, and never more than all of it."""
    names = travelling(case_for(), "V", "head").keys()
    _, (first,) = rounds(case_for(), foul(kappa=2.0, target=0.0, ramp=0.0, control=True), 1)
    # Somewhere between what was tried, so that neither end will do.
    target = (first["tried"][0] + min(first["tried"])) / 2 + 0.001
    ends = []
    for values in ({"kappa": 0.0}, {"kappa": kappa}, {"kappa": kappa, "control": True}):
        state, records = rounds(case_for(), foul(target=target, ramp=0.0, **values), 1)
        ends.append({name: state.tensors[name].double() for name in names})
    centre, full, steered = ends
    assert len(records[0]["tried"]) == len(POINTS)
    share = records[0]["radius"] / kappa if kappa else 0.0
    assert (0 < share < 1) == (kappa > 0)
    close(steered, {n: centre[n] + share * (full[n] - centre[n]) for n in names})


def test_every_rounds_radius_is_within_kappa_and_lands_where_it_says(case_for: MakeCase) -> None:
    state, records = rounds(case_for(), foul(rounds=4, kappa=0.4, target=0.1, control=True))
    assert len(records) == 4
    for record in records:
        assert 0 <= record["radius"] <= 0.4
        assert min(record["tried"]) <= record["expected"] <= record["tried"][0]
        # Not below the aim, unless the retain mean alone is.
        assert record["expected"] >= min(record["aim"], record["tried"][0])
    assert state.finished == (
        f"forget accuracy {records[-1]['expected']:.3f}, target 0.100, after 4 rounds"
    )


@pytest.mark.parametrize("forget_from", ["round", "centre"])
def test_of_clients_the_target_is_their_domains_held_out_accuracy(
    case_for: MakeCase, forget_from: str
) -> None:
    case = case_for("client:east-0")
    method = foul(rounds=3, forget_from=forget_from, pool=False, curve=0.0, **STEERED)
    _, records = rounds(case, method)
    told = [
        reply.numbers["scores"]["validation"]
        for request, reply in engine_of(case).of_task("unlearn")
        if request.round == 1 and request.client.startswith("east")
    ]
    assert [score["samples"] for score in told] == [3, 3]
    expected = sum(score["correct"] for score in told) / 6
    assert [record["target"] for record in records] == [expected] * 3
    # Their peers answer for the domain: no stand-in is needed.
    assert asked(case, "learn") == asked(case, "evaluate") == set()
    if forget_from == "round":
        scores = evaluate(case.federation, case.learned, splits=("validation",))
        total = scores.total("validation", ["east-0", "east-1"])
        assert expected == total.correct / total.samples


def test_of_clients_the_target_is_pooled_and_counts_the_samples_that_are_missing(
    case_for: MakeCase,
) -> None:
    case = case_for("client:east-0")
    _, records = rounds(case, foul(rounds=1, pool=True, curve=0.5, **STEERED))
    told: dict[str, Counts] = {}
    for request, reply in engine_of(case).of_task("unlearn"):
        score = reply.numbers["scores"]["validation"]
        domain = request.client.split("-")[0]
        told[domain] = told.get(domain, Counts()) + Counts(score["correct"], score["samples"])
    kept = {client.id: client.samples["train"] for client in case.federation.clients}
    share = kept["east-1"] / (kept["east-0"] + kept["east-1"])
    assert share < 0.9
    errors = (1 - pooled(told)["east"]) / math.sqrt(share)
    assert records[0]["target"] == pytest.approx(1 - errors)
    assert records[0]["target"] < told["east"].share


def test_a_target_of_ones_own_wins(case_for: MakeCase) -> None:
    case = case_for()
    _, records = rounds(case, foul(rounds=4, target=0.05, **STEERED))
    assert [record["target"] for record in records] == [0.05] * 4
    assert asked(case, "learn") == asked(case, "evaluate") == set()
    before = records[0]["forget_train"]
    assert before > 0.05
    # Half of four rounds lead down to it.
    middle = 0.05 + (before - 0.05) / 2
    assert [r["aim"] for r in records] == pytest.approx([middle, 0.05, 0.05, 0.05])


def test_an_aim_is_never_above_where_it_began(case_for: MakeCase) -> None:
    """A model that answers worse than the target is not taught the forgotten data."""
    _, records = rounds(case_for(), foul(rounds=2, target=1.0, **STEERED))
    assert [record["aim"] for record in records] == [records[0]["forget_train"]] * 2


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize(("samples", "together", "count"), [(10, 0, 10), (128, 0, 27), (1, 35, 18)])
def test_what_was_tried_is_what_the_model_would_do_there(
    case_for: MakeCase,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    norm: str,
    samples: int,
    together: int,
    count: int,
) -> None:
    case = case_for(norm=norm)
    options = {"probe": samples, "probe_together": together, "probe_share": 0, "calibrate": False}
    chosen = foul(target=0.1, **options, **STEERED)
    _, records = rounds(case, chosen, 1)
    pairs = engine_of(case).of_task("probe")
    assert [request.client for request, _ in pairs] == ["east-0", "east-1"]
    sent = pairs[0][0].tensors
    centre, way = take_group(sent, "centre"), take_group(sent, "way")
    assert centre.keys() == way.keys() == travelling(case, "V", "head").keys()
    rows = torch.tensor([number * 27 // count for number in range(count)])
    net = make_net(norm=norm)
    for place, point in enumerate(POINTS):
        scope = {name: centre[name] + point * way[name] for name in centre}
        net.load_state_dict(case.learned | scope)
        correct = 0
        for client in tiny_clients:
            if client.domain == "east":
                images, labels = client.train.batch(rows)
                with torch.no_grad():
                    answers = net.eval()(to_float(images)).argmax(1)
                correct += int((answers == labels).sum())
        assert records[0]["tried"][place] == correct / (2 * count)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("start", ["centre", "round"])
def test_what_was_tried_begins_where_all_samples_are(
    case_for: MakeCase, precision: str, start: str
) -> None:
    """Who started at the centre has told how all samples are answered there; else nothing is known
    of it but what was tried."""
    case = case_for()
    few = {"probe": 5, "probe_together": 0, "precision": precision, "forget_from": start}
    _, records = rounds(case, foul(target=0.1, **few, **STEERED), 2)
    for record, number in zip(records, (1, 2), strict=True):
        replies = [r for q, r in engine_of(case).of_task("probe") if q.round == number]
        hits = [r.numbers["correct"] for r in replies]
        plain = [sum(at) / 10 for at in zip(*hits, strict=True)]
        moved = record["forget_train"] - plain[0] if start == "centre" else 0.0
        expected = [min(1.0, max(0.0, share + moved)) for share in plain]
        assert record["tried"] == pytest.approx(expected)


def test_a_forget_client_away_when_radii_are_tried(case_for: MakeCase) -> None:
    case = case_for(meddle=gone("east-0", "probe"))
    _, records = rounds(case, foul(target=0.1, probe_share=0, **STEERED), 1)
    (reply,) = (r for _, r in engine_of(case).of_task("probe") if not r.error)
    assert reply.client == "east-1"
    assert records[0]["tried"] == [hits / 27 for hits in reply.numbers["correct"]]
    # It did answer with its delta.
    assert "east-0" in records[0]["matching"]["weights"]


def test_without_anyone_to_try_radii_there_is_an_error_and_no_step(case_for: MakeCase) -> None:
    case, method = case_for(meddle=gone("east", "probe")), foul(target=0.1, **STEERED)
    state = method.start(case)
    with pytest.raises(QuorumError, match="0 of 2 clients answered"):
        method.step(case, state)
    assert state.round == 0
    assert same_bits(state.tensors, case.learned)


@pytest.mark.parametrize(("extra", "chance", "spent"), [(0, 1.0, 0), (2, 1.0, 2), (2, 100.0, 0)])
def test_further_rounds_while_retain_clients_lose_too_much(
    case_for: MakeCase, extra: int, chance: float, spent: int
) -> None:
    def worse(request: Request, reply: Reply) -> Reply:
        if request.task != "unlearn" or request.round == 1:
            return reply
        score = {**reply.numbers["scores"]["validation"], "correct": 0}
        scores = {**reply.numbers["scores"], "validation": score}
        return replace(reply, numbers={**reply.numbers, "scores": scores})

    options = {"rounds": 2, "extra": extra, "chance": chance, "delta": 0.01, "target": 0.1}
    case, method = case_for(meddle=worse), foul(**(STEERED | options))
    state, records = rounds(case, method)
    assert [method.planned(case, replace(state, round=n, finished="")) for n in (0, 1, 2)] == [
        2,
        2,
        3,
    ]
    assert method.planned(case, state) == 2 + spent
    assert records[0]["retain_validation"] > 0.01
    assert state.round == len(records) == 2 + spent
    reached = "the limit of" if spent == extra else "after"
    assert state.finished.startswith(f"{reached} {2 + spent} rounds; forget accuracy ")
    assert state.finished.endswith(f"retain clients lost {records[0]['retain_validation']:.3f}")


def test_a_whole_domains_target_is_the_stand_ins_estimate(case_for: MakeCase) -> None:
    """From the counts that crossed, by the line in logits."""
    case = case_for()
    _, records = rounds(case, foul(rounds=2, offset=0.2, slope=0.6, **STEERED))

    def logit(correct: float, samples: int) -> float:
        return float(np.log((correct + 0.5) / (samples - correct + 0.5)))

    pairs = engine_of(case).of_task("evaluate")
    counts = {}
    for forget in (True, False):
        scores = [s for _, r in of_role(case, pairs, forget) for s in r.numbers.values()]
        counts[forget] = [sum(s[key] for s in scores) for key in ("correct", "samples")]
    # 27 + 3 samples of two forget clients; 3 held-out samples of six others; scored once.
    assert (counts[True][1], counts[False][1]) == (60, 18)
    learned = records[0]["retain_validation"] * 18
    gain = logit(learned, 18) - logit(*counts[False])
    expected = 1 / (1 + np.exp(-logit(*counts[True]) - 0.2 - 0.6 * gain))
    assert [record["target"] for record in records] == pytest.approx([expected] * len(records))
    assert records[0]["standin"]["east"] == counts[True][0] / 60
    assert records[0]["standin"]["retain"] == counts[False][0] / 18
    assert not any("standin" in record for record in records[1:])


def test_the_stand_in_has_learned_before_the_first_step(case_for: MakeCase) -> None:
    """What the method trains is what training it alone gives; later rounds know its scores."""
    case, alone = case_for(), case_for()
    method = foul(rounds=3, **STEERED)
    rounds(case, method)
    trained = encode(StandIn(alone, method.options).trained("alone"), "bfloat16")
    scored = engine_of(case).of_task("evaluate")
    assert all(same_bits(request.tensors, trained) for request, _ in scored)
    tasks = [request.task for request, _ in engine_of(case).crossed]
    assert tasks.index("probe") > max(n for n, task in enumerate(tasks) if task == "evaluate")


def test_a_rounds_record_tells_all_that_its_clients_spent(case_for: MakeCase) -> None:
    """The stand-in's rounds and scores and the trial of radii too; not the frozen parts."""
    case = case_for()
    _, records = rounds(case, foul(rounds=2, **STEERED))
    told = [cost for record in records for cost in record["costs"].values()]
    pairs = [(q, a) for q, a in engine_of(case).crossed if q.task != "freeze"]
    assert {q.task for q, _ in pairs} == {"unlearn", "probe", "learn", "evaluate"}
    assert sum(cost["bytes_down"] for cost in told) == sum(q.bytes for q, _ in pairs)
    assert sum(cost["bytes_up"] for cost in told) == sum(a.bytes for _, a in pairs)


# Forget clients that have left


@pytest.fixture
def kept(make_net: MakeNet) -> dict[str, Tensors]:
    """Last updates of both clients of the east, as a run would have kept them."""
    generator = torch.Generator().manual_seed(5)
    state = scope_of(make_net(norm="group").state_dict(), "V", "head")
    return {
        client: {n: 0.02 * torch.randn(t.shape, generator=generator) for n, t in state.items()}
        for client in ("east-0", "east-1")
    }


@pytest.mark.parametrize("kappa", [0.0, 1.5])
def test_of_those_who_left_only_the_stored_updates_count(
    case_for: MakeCase, kept: dict[str, Tensors], kappa: float
) -> None:
    case = case_for(deltas=kept)
    state, records = rounds(
        case, foul(departed=True, control=True, kappa=kappa, normalise="none"), 1
    )
    assert asked(case) == {client.id for client in case.request.retain}
    mean = mean_of(engine_of(case).of_task("unlearn"))
    start = travelling(case, "V", "head")
    if kappa == 0:
        close({n: state.tensors[n] for n in mean}, {n: start[n] + mean[n] for n in mean})
        return
    weights = records[0]["matching"]["weights"]
    away = {client: weights[client] for client in kept}
    # With a minus: what they once added is taken away.
    assert all(weight <= 0 for weight in away.values())
    assert sum(away.values()) < -0.01
    deltas = {reply.client: reply.tensors for _, reply in engine_of(case).of_task("unlearn")}
    rows = deltas | kept
    expected = {
        n: start[n].double() + sum(weights[c] * rows[c][n].double() for c in weights) for n in start
    }
    close({n: state.tensors[n] for n in start}, expected)
    without, plain = rounds(case_for(deltas=kept), foul(departed=True, kappa=0.0), 1)
    for client in kept:
        assert records[0]["matching"]["cosines"][client] < plain[0]["matching"]["cosines"][client]
    assert not same_bits(state.tensors, without.tensors)


# Continued elsewhere


@pytest.mark.parametrize(("deleted", "unfit"), [(False, 100.0), (True, 100.0), (False, 0.0)])
def test_another_process_goes_on_with_the_same_bits(
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    deleted: bool,
    unfit: float,
) -> None:
    """Clients who still have the outputs of the frozen parts are not sent these again; and momentum
    goes on too."""
    options = STEERED | {"rounds": 2, "extra": 0, "unfit": unfit, "precision": "int8"}
    whole, _ = rounds(make_case(make_net, tiny_clients, tmp_path / "whole"), foul(**options))
    case = make_case(make_net, tiny_clients, tmp_path / "broken")
    first = foul(**options)
    state = first.start(case)
    first.step(case, state)
    if deleted:
        for file in (tmp_path / "broken").rglob("east-0-train-*.npy"):
            file.unlink()
    engine_of(case).crossed.clear()
    state = MethodState(state.tensors, state.extra, state.numbers, state.round, state.finished)
    second = foul(**options)
    second.step(case, state)
    asks = engine_of(case).of_task("freeze")
    assert [request.client for request, _ in asks if not request.tensors] == [
        client.id for client in case.federation.clients
    ]
    again = {request.client for request, _ in asks if request.tensors}
    assert again == ({"east-0"} if deleted else set())
    assert same_bits(state.tensors, whole.tensors)


def test_a_client_that_lost_everything_is_sent_the_scope_again(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """Its disk was freed between two processes: a step would lead it nowhere, for ever."""
    case = make_case(make_net, tiny_clients, tmp_path)
    options = STEERED | {"rounds": 2, "extra": 0, "precision": "int8"}
    first = foul(**options)
    state = first.start(case)
    first.step(case, state)
    lost = [file for file in tmp_path.rglob("*east-0*") if file.is_file()]
    assert lost
    for file in lost:
        file.unlink()
    engine_of(case).crossed.clear()
    record = foul(**options).step(case, state)
    assert record["failures"] == {}
    sent = {r.client: r.tensors for r, _ in engine_of(case).of_task("unlearn")}
    whole = {client for client, tensors in sent.items() if take_group(tensors, "scope")}
    assert whole == {"east-0"}


def test_processes_give_the_same_bits(case_for: MakeCase) -> None:
    """However requests are spread over processes, with every part of the method in use."""
    options = ASIDE | {"rounds": 2}
    here, there = case_for(), case_for()
    engine = ProcessEngine(engine_of(there)._worker, 2, 1)
    federation = Federation(engine, FederationConfig(), 0)
    try:
        states = [
            rounds(case, foul(**options))[0]
            for case in (here, replace(there, federation=federation))
        ]
    finally:
        engine.close()
    assert same_bits(states[0].tensors, states[1].tensors)
    assert same_bits(states[0].extra, states[1].extra)
    assert states[0].numbers["expected"] == states[1].numbers["expected"]


# What must not stop it


def test_a_client_that_never_gets_the_frozen_parts_is_left_out(case_for: MakeCase) -> None:
    case = case_for(meddle=gone("north-0", "freeze"))
    state, _ = rounds(case, foul(rounds=2))
    assert state.round == 2


def test_a_client_without_held_out_samples_takes_part(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    first, *others = tiny_clients
    bare = replace(first, validation=first.validation.subset([]))
    case = case_for(clients=[bare, *others])
    _, records = rounds(case, foul(rounds=1))
    assert records[0]["failures"] == {}
    assert bare.id in records[0]["matching"]["weights"]


def test_a_forgotten_domain_whose_clients_do_not_score_the_stand_in(case_for: MakeCase) -> None:
    """Half of the forget clients are a quorum: the others' estimate must do."""
    case = case_for("domain:east,west", meddle=gone("east", "evaluate"))
    _, records = rounds(case, foul(rounds=1, **STEERED))
    assert 0 < records[0]["target"] < 1


def test_a_round_that_failed_can_be_done_again(case_for: MakeCase) -> None:
    """As if it had not been tried: the stand-in, too, has made one round only."""
    failed: list[str] = []

    def once(request: Request, reply: Reply) -> Reply:
        if request.task == "probe" and len(failed) < 2:
            failed.append(request.client)
            return Reply(request.client, error="gone")
        return reply

    ends = []
    for meddle in (None, once):
        case, method = case_for(meddle=meddle), foul(rounds=1, **STEERED)
        state = method.start(case)
        if meddle:
            with pytest.raises(QuorumError):
                method.step(case, state)
        method.step(case, state)
        ends.append(state)
    assert same_bits(ends[0].tensors, ends[1].tensors)
    assert same_bits(ends[0].extra, ends[1].extra)


def test_what_an_earlier_attempt_lost_in_8_bits_is_not_sent(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """Another rate is another attempt; a client away in its first round has lost nothing yet."""

    def attempt(store: Path) -> Tensors:
        case = make_case(make_net, tiny_clients, store)
        worker = engine_of(case)._worker
        perform = worker.perform

        def away(request: Request) -> Reply:
            if (request.client, request.task, request.round) == ("north-0", "unlearn", 1):
                return Reply(request.client, error="gone")
            return perform(request)

        worker.perform = away  # type: ignore[method-assign]
        return rounds(case, foul(rounds=2, precision="int8"))[0].tensors

    rounds(
        make_case(make_net, tiny_clients, tmp_path / "used"),
        foul(rounds=2, precision="int8", rate=0.3),
    )
    assert same_bits(attempt(tmp_path / "used"), attempt(tmp_path / "new"))


def test_forget_clients_step_aside(case_for: MakeCase) -> None:
    """Once retain clients say what they see; forget clients are sent matrices with the weights, and
    answer with what they may move."""
    case = case_for()
    state, records = rounds(case, foul(rounds=2, extra=0, **ASIDE))
    assert [record["failures"] for record in records] == [{}, {}]
    told = engine_of(case).of_task("inputs")
    retain, forget = case.request.retain, case.request.forget_ids
    assert [request.client for request, _ in told] == [client.id for client in retain]
    moved = {"V.layer2.0.conv1.weight", "V.layer2.0.conv2.weight", "head.weight"}
    assert set(movable(travelling(case, "V", "head"))) == moved
    for request, reply in engine_of(case).of_task("unlearn"):
        led = set(take_group(request.tensors, "aside"))
        names = set(decode(reply.tensors))
        if request.client in forget:
            assert names == moved
            assert bool(led) == (request.round == 1)
        else:
            assert not led
            assert names == travelling(case, "V", "head").keys()
    assert changed_parts(case.learned, state.tensors) == {"V", "head"}


def test_what_retain_clients_see_decides_where_forget_clients_go(case_for: MakeCase) -> None:
    """Of what forget clients send, next to nothing is felt by the retain clients' layers."""

    def felt(share: float) -> float:
        case = case_for()
        values = ASIDE | {"aside": share, "precision": "float32", "control": False}
        rounds(case, foul(rounds=1, **values))
        told = [
            (unpack(reply.tensors), reply.numbers["samples"])
            for _, reply in engine_of(case).of_task("inputs")
        ]
        moments = pooled_moments(told)
        answers = of_role(case, engine_of(case).of_task("unlearn"), True)
        deltas = mean_of(answers, fairness=0.0)
        flat = {name: deltas[name].flatten(1) for name in moments}
        cost = sum(float(torch.trace(d @ moments[n] @ d.T)) for n, d in flat.items())
        return cost / sum(float(d.square().sum()) for d in flat.values())

    assert felt(1e-4) < 0.1 * felt(1e4)


def test_stepping_aside_goes_on_in_another_process(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """With the same bits; a forget client whose disk was freed is sent the matrices again, and
    whoever missed the first round too."""
    options = ASIDE | {"rounds": 2, "extra": 0}
    whole, _ = rounds(make_case(make_net, tiny_clients, tmp_path / "whole"), foul(**options))
    case = make_case(make_net, tiny_clients, tmp_path / "broken")
    first = foul(**options)
    state = first.start(case)
    first.step(case, state)
    for file in (tmp_path / "broken").rglob("*east-0*"):
        file.unlink()
    engine_of(case).crossed.clear()
    record = foul(**options).step(case, state)
    assert record["failures"] == {}
    sent = engine_of(case).of_task("unlearn")
    assert {r.client for r, _ in sent if take_group(r.tensors, "aside")} == {"east-0"}
    # What 8 bits had lost of east-0's answers is gone with its disk: the same but for that.
    close(state.tensors, whole.tensors, 2e-2)
    assert engine_of(case).of_task("inputs") == []


@pytest.mark.parametrize("broken", ["away", "NaN", "shape"])
def test_a_retain_client_that_does_not_say_what_it_sees_is_left_out(
    case_for: MakeCase, broken: str
) -> None:
    def meddle(request: Request, reply: Reply) -> Reply:
        if (request.task, request.client) != ("inputs", "north-0"):
            return reply
        if broken == "away":
            return Reply(request.client, error="gone")
        value = torch.full((1,), math.nan) if broken == "NaN" else torch.ones(2)
        return replace(reply, tensors=reply.tensors | {"head.weight.scale": value})

    case = case_for(meddle=meddle)
    state, _ = rounds(case, foul(rounds=2, **ASIDE))
    assert all(bool(torch.isfinite(tensor).all()) for tensor in state.tensors.values())
    assert changed_parts(case.learned, state.tensors) == {"V", "head"}
