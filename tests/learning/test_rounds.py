import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, learning, same_bits, snapshot
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foul.config.schema import FederationConfig, LearningConfig, ModelConfig
from foul.data import ClientData
from foul.federation.average import WeightedMean
from foul.federation.federation import (
    EVALUATION,
    Federation,
    QuorumError,
    RoundLog,
    misfit,
    round_half_up,
)
from foul.federation.inprocess import InProcessEngine
from foul.federation.messages import ClientInfo, Numbers, Reply, Request, Tensors
from foul.learning.rounds import (
    LearningState,
    Scores,
    learning_round,
    learning_rounds,
    rate_scale,
    server_step,
)
from foul.models import part_of

SHORT = learning(l2u={"generator_epochs": 0.25, "mid_epochs": 0.25})
NO_BUFFERS: frozenset[str] = frozenset()
finite = st.floats(-100, 100, width=32)


class ScriptedEngine:
    """Clients that answer what a function says."""

    def __init__(self, names: Sequence[str], answer: Callable[[Request], Reply]) -> None:
        self.clients = [ClientInfo(name, name.split("-")[0], {}) for name in names]
        self.requests: list[Request] = []
        self._answer = answer

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            self.requests.append(request)
            yield self._answer(request)

    def close(self) -> None:
        pass


def numbers(samples: int = 1, correct: int = 0, validated: int = 10, loss: float = 0.0) -> Numbers:
    validation = {"samples": validated, "correct": correct}
    return {"samples": samples, "validation": validation, "losses": {"a/b": loss}}


def federation(engine: ScriptedEngine, **values: object) -> Federation:
    return Federation(engine, FederationConfig.model_validate(values), seed=0)


def one_round(
    fed: Federation, state: LearningState, config: LearningConfig = SHORT
) -> dict[str, object]:
    return learning_round(fed, config, state, fed.clients, NO_BUFFERS, "learning")


# Averages


@given(
    st.lists(
        st.tuples(st.lists(finite, min_size=3, max_size=3), st.integers(1, 5000)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_the_mean_is_weighted_by_samples(
    models: list[tuple[list[float], int]], dtype: torch.dtype
) -> None:
    tensors = [torch.tensor(values).to(dtype) for values, _ in models]
    originals = [tensor.clone() for tensor in tensors]
    mean = WeightedMean()
    for tensor, (_, weight) in zip(tensors, models, strict=True):
        mean.add({"x": tensor}, weight)
    total = sum(weight for _, weight in models)
    expected = [
        sum(tensor[i].double().item() * w for tensor, (_, w) in zip(tensors, models, strict=True))
        / total
        for i in range(3)
    ]
    result = mean.result()["x"]
    assert result.dtype == dtype
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64).to(dtype))
    # The clients' own tensors are left alone.
    assert all(a.equal(b) for a, b in zip(tensors, originals, strict=True))


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9),
    st.lists(st.integers(1, 10**6), min_size=1, max_size=9),
)
def test_the_mean_of_equal_models_is_that_model(values: list[float], weights: list[int]) -> None:
    model, mean = torch.tensor(values), WeightedMean()
    for weight in weights:
        mean.add({"x": model}, weight)
    assert mean.result()["x"].equal(model)


def test_whole_numbers_are_rounded() -> None:
    mean = WeightedMean()
    mean.add({"n": torch.tensor(4)}, 1)
    mean.add({"n": torch.tensor(7)}, 2)
    result = mean.result()["n"]
    assert result.dtype == torch.int64
    assert result.item() == 6


# Server steps


@given(
    st.floats(0.05, 2.0),
    st.floats(0.0, 0.95),
    st.lists(st.tuples(finite, finite), min_size=1, max_size=5),
)
def test_server_steps_are_those_of_fedavgm(
    rate: float, momentum: float, means: list[tuple[float, float]]
) -> None:
    config = learning(server_rate=rate, server_momentum=momentum)
    state = LearningState({"w": torch.tensor([1.0]), "b": torch.tensor([1.0])})
    weight, velocity = 1.0, 0.0
    for mean, buffer in means:
        server_step(
            state,
            {"w": torch.tensor([mean]), "b": torch.tensor([buffer])},
            config,
            frozenset({"b"}),
        )
        velocity = momentum * velocity + (mean - weight)
        weight += rate * velocity
        assert state.tensors["w"].item() == pytest.approx(weight, rel=1e-3, abs=1e-2)
        # Statistics become their mean at once.
        assert state.tensors["b"].item() == buffer
    assert "b" not in state.velocity


def test_plain_fedavg_takes_the_mean_bit_for_bit() -> None:
    state = LearningState({"w": torch.tensor([1e8])})
    mean = torch.tensor([0.1])
    server_step(state, {"w": mean}, learning(), NO_BUFFERS)
    assert state.tensors["w"].equal(mean)
    assert state.velocity == {}


def test_tensors_that_did_not_travel_stay() -> None:
    state = LearningState({"w": torch.zeros(1), "D.x": torch.ones(1)})
    server_step(state, {"w": torch.ones(1)}, learning(server_rate=0.5), NO_BUFFERS)
    assert state.tensors["D.x"].item() == 1.0
    assert state.tensors["w"].item() == 0.5


def test_rates_follow_the_schedule() -> None:
    cosine = learning(schedule="cosine", rounds=11)
    scales = [rate_scale(cosine, number) for number in range(1, 12)]
    assert scales[0] == 1.0
    assert scales[5] == pytest.approx(0.51)
    assert scales[10] == pytest.approx(0.02)
    assert scales == sorted(scales, reverse=True)
    assert rate_scale(learning(schedule="cosine", rounds=1), 1) == 1.0
    constant = learning(schedule="constant", rounds=11)
    assert {rate_scale(constant, number) for number in range(1, 12)} == {1.0}


def test_clients_get_the_rounds_rate() -> None:
    engine = ScriptedEngine(["a-0"], lambda r: Reply(r.client, {"E.w": torch.ones(1)}, numbers()))
    config = learning(schedule="cosine", rounds=5, patience=0)
    fed = federation(engine)
    state = LearningState({"E.w": torch.ones(1)})
    list(learning_rounds(fed, config, state, fed.clients, NO_BUFFERS))
    sent = [request.settings["rate_scale"] for request in engine.requests]
    assert sent == [rate_scale(config, number) for number in range(1, 6)]
    assert [request.round for request in engine.requests] == [1, 2, 3, 4, 5]


# Patience


def rounds_until_done(accuracies: list[int], **values: object) -> LearningState:
    """Learn with a client whose validation hits (of 10) are scripted; the last one repeats."""

    def answer(request: Request) -> Reply:
        correct = accuracies[min(request.round, len(accuracies)) - 1]
        return Reply(request.client, {"E.w": torch.ones(1)}, numbers(1, correct))

    fed = federation(ScriptedEngine(["a-0"], answer))
    state = LearningState({"E.w": torch.ones(1)})
    config = learning(rounds=20, **values)
    list(learning_rounds(fed, config, state, fed.clients, NO_BUFFERS))
    return state


@pytest.mark.parametrize(
    ("accuracies", "patience", "rounds", "best"),
    [
        ([1, 5, 5, 5], 2, 4, 2),
        ([5, 1, 1], 3, 4, 1),
        ([1, 2, 3, 4, 5], 2, 7, 5),
        ([3, 1, 4, 1, 1], 2, 5, 3),
        ([0, 0], 1, 2, 1),
        ([5, 5], 0, 20, 1),
    ],
)
def test_learning_ends_when_nothing_gets_better(
    accuracies: list[int], patience: int, rounds: int, best: int
) -> None:
    state = rounds_until_done(accuracies, patience=patience)
    assert (state.round, state.best_round) == (rounds, best)


def test_small_gains_do_not_count_one_by_one_but_add_up() -> None:
    # Each gain of 0.1 is below 0.15, two of them are not.
    state = rounds_until_done([1, 2, 3, 4], patience=3, min_delta=0.15)
    assert (state.best_round, state.round) == (3, 6)


def test_without_validation_samples_nothing_is_stale() -> None:
    engine = ScriptedEngine(
        ["a-0"], lambda r: Reply(r.client, {"E.w": torch.ones(1)}, numbers(validated=0))
    )
    fed, state = federation(engine), LearningState({"E.w": torch.ones(1)})
    config = learning(rounds=6, patience=2)
    records = list(learning_rounds(fed, config, state, fed.clients, NO_BUFFERS))
    assert [record["validation_accuracy"] for record in records] == [None] * 6


def test_a_finished_stage_asks_nobody() -> None:
    engine = ScriptedEngine(["a-0"], lambda r: Reply(r.client))
    fed = federation(engine)
    state = LearningState({}, round=20)
    assert list(learning_rounds(fed, learning(rounds=20), state, fed.clients, NO_BUFFERS)) == []
    assert engine.requests == []


def test_scores_are_weighted_by_samples() -> None:
    scores = Scores()
    scores.add(numbers(samples=1, correct=9, validated=10, loss=4.0))
    scores.add(numbers(samples=3, correct=1, validated=30, loss=8.0))
    assert scores.validation_accuracy == 0.25
    assert scores.losses() == {"a/b": 7.0}


# Clients that do not answer well


def model_of(client: str) -> Tensor:
    return torch.tensor([float(client[-1])])


def trouble(kind: str) -> Callable[[Request], Reply]:
    """Client u-N answers N, weighted with N + 1; u-1 does what `kind` says."""

    def answer(request: Request) -> Reply:
        number = int(request.client[-1])
        values = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
        if number == 1 and kind == "error":
            return Reply(request.client, error="RuntimeError: power cut")
        tensor = model_of(request.client)
        if number == 1 and kind in values:
            tensor = torch.tensor([values[kind]])
        return Reply(request.client, {"E.w": tensor}, numbers(number + 1))

    return answer


@pytest.mark.parametrize("kind", ["error", "nan", "inf", "-inf"])
def test_a_client_that_fails_is_named_and_left_out(kind: str) -> None:
    fed = federation(ScriptedEngine(["u-0", "u-1", "u-2"], trouble(kind)))
    state = LearningState({"E.w": torch.zeros(1)})
    record = one_round(fed, state)
    reason = "power cut" if kind == "error" else "'E.w' holds NaN or infinity"
    assert isinstance(record["failures"], dict)
    assert list(record["failures"]) == ["u-1"]
    assert reason in record["failures"]["u-1"]
    assert record["answered"] == 2
    assert state.tensors["E.w"].item() == pytest.approx((0 * 1 + 2 * 3) / 4)


@pytest.mark.parametrize(("quorum", "passes"), [(0.5, True), (0.66, True), (0.67, False)])
def test_below_the_quorum_nothing_changes(quorum: float, passes: bool) -> None:
    fed = federation(ScriptedEngine(["u-0", "u-1", "u-2"], trouble("error")), quorum=quorum)
    state = LearningState({"E.w": torch.full((1,), 9.0)})
    if passes:
        one_round(fed, state)
        assert state.round == 1
        return
    with pytest.raises(
        QuorumError, match=r"Round 1: 2 of 3.*quorum is 3.*u-1.*power cut.*--resume"
    ):
        one_round(fed, state)
    assert state.tensors["E.w"].item() == 9.0
    assert (state.round, state.best_round) == (0, 0)


@pytest.mark.parametrize(("quorum", "passes"), [(0.55, True), (0.56, False)])
def test_the_quorum_is_no_victim_of_rounding(quorum: float, passes: bool) -> None:
    """0.55 * 20 is a little more than 11 in floating point."""
    names = [f"u-{number:02}" for number in range(20)]
    late = set(names[11:])

    def answer(request: Request) -> Reply:
        problem = "late" if request.client in late else ""
        return Reply(request.client, {"E.w": torch.ones(1)}, numbers(), error=problem)

    fed = federation(ScriptedEngine(names, answer), quorum=quorum)
    state = LearningState({"E.w": torch.zeros(1)})
    if passes:
        assert one_round(fed, state)["answered"] == 11
    else:
        with pytest.raises(QuorumError, match="11 of 20 clients answered, the quorum is 12"):
            one_round(fed, state)


def test_nobody_answers() -> None:
    fed = federation(ScriptedEngine(["u-1"], trouble("nan")), quorum=0.01)
    with pytest.raises(QuorumError, match="0 of 1"):
        one_round(fed, LearningState({"E.w": torch.zeros(1)}))


# Who is asked

INFOS = [ClientInfo(f"c-{number:02}", "c", {}) for number in range(20)]


def asked(participation: float, round: int, seed: int = 0) -> list[str]:
    fed = Federation(
        ScriptedEngine([], lambda r: Reply(r.client)),
        FederationConfig(participation=participation),
        seed,
    )
    return [client.id for client in fed.sample(INFOS, round)]


@pytest.mark.parametrize(("participation", "count"), [(1.0, 20), (0.5, 10), (0.025, 1), (0.001, 1)])
def test_the_share_that_is_asked(participation: float, count: int) -> None:
    names = asked(participation, 1)
    assert len(set(names)) == len(names) == count
    assert names == sorted(names)


def test_sampling_is_addressed_by_seed_and_round() -> None:
    assert asked(0.3, 7) == asked(0.3, 7)
    assert len({tuple(asked(0.3, number)) for number in range(1, 11)}) > 5
    assert asked(0.3, 7, seed=1) != asked(0.3, 7, seed=2)
    everyone = {name for number in range(40) for name in asked(0.3, number)}
    assert everyone == {info.id for info in INFOS}


def test_half_clients_are_rounded_up() -> None:
    assert [round_half_up(value) for value in (0.4, 0.5, 1.5, 2.5, 2.6)] == [0, 1, 2, 3, 3]


def away(names: list[str], dropout: float, round: int) -> set[str]:
    fed = federation(ScriptedEngine(names, trouble("")), dropout=dropout, quorum=0.01)
    state = LearningState({"E.w": torch.zeros(1)}, round=round - 1)
    failures = one_round(fed, state)["failures"]
    assert isinstance(failures, dict)
    assert all("away" in reason for reason in failures.values())
    return set(failures)


def test_dropout_is_simulated_per_round_and_client() -> None:
    names = [f"u-{number:03}" for number in range(200)]
    missing = away(names, 0.3, round=2)
    assert 35 < len(missing) < 85
    assert missing == away(names, 0.3, round=2)
    assert missing != away(names, 0.3, round=3)
    # Whether one is away has nothing to do with who else there is.
    assert away(names[:50], 0.3, round=2) == missing & set(names[:50])
    assert away(names, 0.0, round=2) == set()


def test_nobody_is_dropped_from_a_measurement() -> None:
    names = [f"u-{number:03}" for number in range(50)]
    fed = federation(ScriptedEngine(names, trouble("")), dropout=0.9, quorum=0.01)
    log = RoundLog()
    list(fed.ask("evaluate", fed.clients, {}, {}, round=0, stage=EVALUATION, log=log))
    assert log.answered == names


# With real clients


def learn_once(
    worker_of: MakeWorker,
    tensors: Tensors,
    order: slice = slice(None),
    clients: Sequence[ClientData] | None = None,
) -> tuple[LearningState, dict[str, object]]:
    fed = Federation(InProcessEngine(worker_of(clients)), FederationConfig(), seed=0)
    state = LearningState(dict(tensors))
    buffers = frozenset(n for n in tensors if "running" in n or "num_batches" in n)
    record = learning_round(fed, SHORT, state, fed.clients[order], buffers, "learning")
    return state, record


@pytest.fixture(scope="module")
def start(make_net: MakeNet) -> Tensors:
    return snapshot(make_net())


def test_a_round_is_the_same_twice_and_in_any_order(
    make_worker: MakeWorker, start: Tensors
) -> None:
    first, _ = learn_once(make_worker, start)
    again, record = learn_once(make_worker, start)
    backwards, _ = learn_once(make_worker, start, slice(None, None, -1))
    assert same_bits(first.tensors, again.tensors)
    for name, tensor in backwards.tensors.items():
        torch.testing.assert_close(tensor, first.tensors[name], atol=1e-6, rtol=1e-6)
    assert record["answered"] == 8
    assert not same_bits(first.tensors, start)


def test_statistics_are_averaged_too(
    make_worker: MakeWorker, start: Tensors, tiny_clients: tuple[ClientData, ...]
) -> None:
    name = "E.bn1.running_mean"
    pair = tiny_clients[:1] + tiny_clients[2:3]
    uneven = (pair[0], replace(pair[1], train=pair[1].train.subset(range(9))))
    alone = [learn_once(make_worker, start, clients=(c,))[0].tensors[name] for c in uneven]
    together, _ = learn_once(make_worker, start, clients=uneven)
    torch.testing.assert_close(together.tensors[name], (27 * alone[0] + 9 * alone[1]) / 36)
    assert not alone[0].equal(alone[1])


def test_costs_are_what_crossed_the_border(make_worker: MakeWorker, start: Tensors) -> None:
    _, record = learn_once(make_worker, start)
    sent = sum(t.nbytes for name, t in start.items() if part_of(name) != "psi")
    costs = record["costs"]
    assert isinstance(costs, dict)
    assert len(costs) == 8
    for cost in costs.values():
        assert sent < cost["bytes_down"] < sent + 3000
        assert sent < cost["bytes_up"] < sent + 1000
        assert cost["flops_client"] > 0
    elements = sum(t.numel() for t in start.values())
    assert record["flops_server"] == 2 * elements * 9


def test_each_clients_delta_can_be_kept(make_worker: MakeWorker, start: Tensors) -> None:
    """What it answered less what it was sent, of everything that travels."""
    worker, kept = make_worker(), dict[str, Tensors]()
    fed = Federation(InProcessEngine(worker), FederationConfig(), seed=0)
    state = LearningState(dict(start))
    sent = {name: t.clone() for name, t in start.items()}
    learning_round(fed, SHORT, state, fed.clients, NO_BUFFERS, "learning", keep=kept.__setitem__)
    assert list(kept) == [client.id for client in fed.clients]
    values = {"learning": SHORT.model_dump(mode="json"), "seed": 0, "rate_scale": 1.0}
    for client in ("north-0", "east-1"):
        reply = worker.perform(Request(client, "learn", 1, sent, values))
        expected = {name: reply.tensors[name] - sent[name] for name in sent}
        assert same_bits(kept[client], expected)
        assert any(bool(delta.any()) for delta in expected.values())


def test_only_usable_replies_are_kept() -> None:
    def answer(request: Request) -> Reply:
        value = float("nan") if request.client == "u-1" else 3.0
        return Reply(request.client, {"E.w": torch.tensor([value])}, numbers())

    kept: dict[str, Tensors] = {}
    fed = federation(ScriptedEngine(["u-1", "u-2"], answer))
    state = LearningState({"E.w": torch.ones(1)})
    records = learning_rounds(fed, SHORT, state, fed.clients, NO_BUFFERS, keep=kept.__setitem__)
    next(records)
    assert {client: delta["E.w"].item() for client, delta in kept.items()} == {"u-2": 2.0}
    # The next round's delta is from where that round began, and takes the place of the first.
    next(records)
    assert kept["u-2"]["E.w"].item() == 0.0


def test_another_network_in_fewer_bytes() -> None:
    """What is asked names the network; the mean is taken in full precision."""
    values = {"u-1": 1.0, "u-2": 1.0078125}

    def answer(request: Request) -> Reply:
        assert request.tensors["E.w"].dtype == torch.bfloat16
        tensor = torch.tensor([values[request.client]], dtype=torch.bfloat16)
        return Reply(request.client, {"E.w": tensor}, numbers())

    engine = ScriptedEngine(["u-1", "u-2"], answer)
    fed, state = federation(engine), LearningState({"E.w": torch.ones(1)})
    model = ModelConfig(backbone="tiny", norm="group")
    learning_round(fed, SHORT, state, fed.clients, NO_BUFFERS, "standin", model, "bfloat16")
    for request in engine.requests:
        assert request.settings["model"] == model.model_dump(mode="json")
        assert request.settings["precision"] == "bfloat16"
    # Half way between two neighbours of bfloat16.
    assert state.tensors["E.w"].dtype == torch.float32
    assert state.tensors["E.w"].item() == 1.00390625
    one_round(fed, LearningState({"E.w": torch.ones(1, dtype=torch.bfloat16)}))
    assert not {"model", "precision"} & engine.requests[-1].settings.keys()


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({"a": torch.zeros(2)}, "tensor 'b' is missing"),
        ({"a": torch.zeros(2), "b": torch.zeros(1), "c": torch.zeros(1)}, "'c' is unexpected"),
        ({"a": torch.zeros(1), "b": torch.zeros(1)}, r"'a' has shape \(1,\), expected \(2,\)"),
        ({"a": torch.zeros(2), "b": torch.zeros(1)}, "^$"),
    ],
)
def test_replies_of_other_names_or_shapes_are_told(tensors: Tensors, why: str) -> None:
    assert re.search(why, misfit(tensors, {"a": torch.ones(2), "b": torch.ones(1)}))
