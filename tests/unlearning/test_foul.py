from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from factories import MakeNet, changed_parts, same_bits
from forget_cases import MakeCase, engine_of, gone, scope_of

from foul.client.compress import decode
from foul.config.schema import FederationConfig
from foul.evaluation.accuracy import evaluate
from foul.federation.federation import QuorumError
from foul.federation.messages import ClientInfo, Reply, Request, Tensors, payload_bytes
from foul.unlearning import Case, ForgetRequest, Foul, FoulOptions, MethodState
from foul.unlearning.foul import Evidence, key_of

PLAIN: dict[str, Any] = {"precision": "float32", "batch_size": 8, "epochs": 1.0, "delta": 1.0}


def foul(**values: object) -> Foul:
    return Foul(FoulOptions.model_validate(PLAIN | values))


def rounds(case: Case, method: Foul, count: int = 99) -> tuple[MethodState, list[dict[str, Any]]]:
    state, records = method.start(case), list[dict[str, Any]]()
    while not state.finished and len(records) < count:
        records.append(method.step(case, state))
    return state, records


def mean_of(case: Case, replies: list[tuple[Request, Reply]]) -> Tensors:
    total = sum(reply.numbers["samples"] for _, reply in replies)
    mean: Tensors = {}
    for _, reply in replies:
        for name, delta in decode(reply.tensors).items():
            share = delta * (reply.numbers["samples"] / total)
            mean[name] = mean[name] + share if name in mean else share
    return mean


def close(one: Tensors, other: Tensors, tolerance: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance)


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
    expected = {n for n in scope_of(case.learned, *scope) if n not in case.buffers}
    for request, reply in engine_of(case).of_task("unlearn"):
        assert request.tensors.keys() == reply.tensors.keys() == expected


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_what_clients_say_of_the_first_model_is_true_of_the_learned_one(
    case_for: MakeCase, norm: str
) -> None:
    """With BatchNorm too: V's running statistics must have reached the clients."""
    case = case_for(norm=norm)
    _, records = rounds(case, foul(), 1)
    scores = evaluate(case.federation, case.learned, splits=("train", "validation"))
    for role, clients in (("forget", case.request.forget), ("retain", case.request.retain)):
        for split in ("train", "validation"):
            total = scores.total(split, [client.id for client in clients])
            assert records[0][f"{role}_{split}"] == total.correct / total.samples


@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_radius_the_update_is_the_retain_mean(case_for: MakeCase, weighted: bool) -> None:
    def heavy(request: Request, reply: Reply) -> Reply:
        if weighted and request.task == "unlearn" and request.client == "north-0":
            return replace(reply, numbers={**reply.numbers, "samples": 200})
        return reply

    case = case_for(meddle=heavy)
    state, _ = rounds(case, foul(kappa=0, normalise="none"), 1)
    replies = engine_of(case).of_task("unlearn")
    assert {request.client for request, _ in replies} == {c.id for c in case.federation.clients}
    mean = mean_of(case, [p for p in replies if p[0].client not in case.request.forget_ids])
    close({n: state.tensors[n] for n in mean}, {n: case.learned[n] + mean[n] for n in mean})


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
    state, records = rounds(case, foul(rounds=2, matching=False))
    asked = {request.client for request, _ in engine_of(case).of_task("unlearn")}
    assert asked == {client.id for client in case.request.retain}
    assert state.round == len(records) == 2
    assert state.finished == "the limit of 2 rounds"


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


@pytest.mark.parametrize("options", [{}, {"forget": "negated", "anchor": "all"}])
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
def test_one_or_many_are_forgotten(case_for: MakeCase, forget: str) -> None:
    case = case_for(forget)
    state, records = rounds(case, foul(rounds=2, peers=False))
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


def test_simulated_dropout_is_tolerated(case_for: MakeCase) -> None:
    case = case_for(federation=FederationConfig(dropout=0.3, quorum=0.1))
    state, records = rounds(case, foul(rounds=3))
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
    assert sorted(state.numbers["ready"]) == [c.id for c in case.federation.clients]
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


def test_the_model_that_the_evidence_is_about_is_kept(case_for: MakeCase) -> None:
    case = case_for()
    state, records = rounds(case, foul(rounds=9, target=1.0))
    assert "reached 1.000" in state.finished
    before, _ = rounds(case_for(), foul(rounds=9, target=1.0), state.round - 1)
    assert same_bits(state.tensors, before.tensors)
    total = evaluate(case.federation, state.tensors, splits=("train",)).total(
        "train", sorted(case.request.forget_ids)
    )
    assert records[-1]["forget_train"] == pytest.approx(total.correct / total.samples, abs=0.02)
    assert "matching" not in records[-1]


def test_a_step_that_costs_the_retain_clients_too_much_is_taken_back(case_for: MakeCase) -> None:
    options: dict[str, object] = {"rounds": 9, "delta": 0.0, "rate": 5.0}
    state, _ = rounds(case_for(), foul(**options))
    assert "cost retain clients" in state.finished
    before, _ = rounds(case_for(), foul(**options), state.round - 2)
    assert same_bits(state.tensors, before.tensors)


def score(correct: int) -> dict[str, dict[str, int]]:
    return {split: {"samples": 10, "correct": correct} for split in ("train", "validation")}


def test_peers_are_the_retain_clients_of_the_same_domain() -> None:
    clients = [ClientInfo(f"{d}-{n}", d, {}) for d in ("east", "west") for n in range(2)]
    scores = {"east-0": score(9), "east-1": score(6), "west-0": score(1), "west-1": score(1)}
    alone = Evidence(scores, ForgetRequest.parse("client:east-0", clients))
    assert alone.peers() == 0.6
    assert alone.accuracy("forget", "train") == 0.9
    assert alone.accuracy("retain", "train") == pytest.approx(8 / 30)
    assert Evidence(scores, ForgetRequest.parse("domain:east", clients)).peers() is None


def test_recovery_asks_retain_clients_and_does_not_walk_back(case_for: MakeCase) -> None:
    case = case_for()
    state, records = rounds(case, foul(rounds=1, recovery=2))
    assert [record["phase"] for record in records] == ["forget", "recover", "recover"]
    asked = {r.client for r, _ in engine_of(case).of_task("unlearn") if r.round > 1}
    assert asked == {client.id for client in case.request.retain}
    forgotten, _ = rounds(case_for(), foul(rounds=1))

    def along(tensors: Tensors) -> float:
        """How far the model is on the way that forgetting went."""
        names = [n for n in tensors if n not in case.buffers]
        way = {n: forgotten.tensors[n] - case.learned[n] for n in names}
        return float(sum(((tensors[n] - case.learned[n]) * way[n]).sum() for n in names))

    assert along(state.tensors) >= along(forgotten.tensors) * 0.99


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8"])
def test_the_ledger_is_what_crossed(case_for: MakeCase, precision: str) -> None:
    case = case_for()
    rounds(case, foul(rounds=2, precision=precision))
    crossed = engine_of(case).crossed
    cost = case.federation.ledger.total("foul")
    assert cost.bytes_down == sum(payload_bytes(r.tensors, r.settings) for r, _ in crossed)
    assert cost.bytes_up == sum(payload_bytes(r.tensors, r.numbers) for _, r in crossed)
    numel = sum(
        t.numel() for n, t in scope_of(case.learned, "V", "head").items() if n not in case.buffers
    )
    width = {"float32": 4, "int8": 1}.get(precision, 2)
    for request, reply in engine_of(case).of_task("unlearn"):
        # 8 bits are for deltas; the weights then go down in 16.
        assert sum(t.nbytes for t in request.tensors.values()) == numel * max(2, width)
        scales = 4 * len(request.tensors) if precision == "int8" else 0
        assert sum(t.nbytes for t in reply.tensors.values()) == numel * width + scales


def test_keys_tell_tensors_apart() -> None:
    one = {"a": torch.ones(2), "b": torch.zeros(2)}
    assert key_of(one) == key_of(dict(reversed(one.items())))
    assert key_of(one) != key_of({"a": torch.ones(2), "b": torch.ones(2)})
    assert key_of(one) != key_of({"a": torch.ones(2), "c": torch.zeros(2)})


def test_evidence_weighs_samples() -> None:
    scores = {
        "a": {"train": {"samples": 10, "correct": 9}, "validation": {"samples": 0, "correct": 0}},
        "b": {"train": {"samples": 30, "correct": 3}, "validation": {"samples": 2, "correct": 1}},
        "c": {"train": {"samples": 4, "correct": 4}, "validation": {"samples": 1, "correct": 0}},
    }
    request = ForgetRequest.parse("client:c", [ClientInfo(name, "d", {}) for name in "abc"])
    assert Evidence(scores, request).to_dict() == {
        "forget_train": 1.0,
        "forget_validation": 0.0,
        "retain_train": 0.3,
        "retain_validation": 0.5,
    }
