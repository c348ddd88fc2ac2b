from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet, learning, same_bits
from forget_cases import engine_of, make_case
from hypothesis import given
from hypothesis import strategies as st

from foul.config.schema import FederationConfig
from foul.data import ClientData
from foul.evaluation.accuracy import evaluate
from foul.evaluation.relearn import Relearned, relearn
from foul.federation.federation import Federation
from foul.federation.ledger import Cost
from foul.federation.messages import ClientInfo, Reply, Request, Tensors
from foul.federation.observer import Observer
from foul.learning.going_on import going_on
from foul.learning.rounds import LearningState, learning_round
from foul.unlearning import Case, ForgetRequest

NO_BUFFERS: frozenset[str] = frozenset()
SCORE = {"causal_correct": 0, "loss": 0.0}


class Knowing:
    """Clients that learn nothing, and of whose 100 training samples ever others are known."""

    def __init__(self, known: Sequence[int]) -> None:
        self.clients = [ClientInfo(name, name[:4], {}) for name in ("east-0", "west-0")]
        self.known = iter(known)
        self.requests: list[Request] = []

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            self.requests.append(request)
            if request.task == "evaluate":
                score = {"samples": 100, "correct": next(self.known), **SCORE}
                yield Reply(request.client, numbers={"train": score})
            else:
                validation = {"samples": 0, "correct": 0}
                numbers = {"samples": 1, "validation": validation, "losses": {}}
                yield Reply(request.client, dict(request.tensors), numbers)

    def close(self) -> None:
        pass


def known(counts: Sequence[int], target: float, limit: int) -> tuple[Relearned, Knowing]:
    """Relearning when so many of 100 samples are known before the first round, after it, ..."""
    engine = Knowing(counts)
    federation = Federation(engine, FederationConfig(), seed=0)
    request = ForgetRequest.parse("domain:east", engine.clients)
    tensors = {"E.weight": torch.zeros(1)}
    found = relearn(federation, tensors, learning(), request, NO_BUFFERS, target, limit)
    return found, engine


@pytest.mark.parametrize(
    ("counts", "rounds"),
    [
        ([90], 0),
        ([89], 0),
        ([95], 0),
        ([88, 89], 1),
        ([20, 88, 40, 88, 91], 4),
        ([20, 30, 40, 50, 89], 4),
        ([20, 30, 40, 50, 88], None),
    ],
)
def test_rounds_until_the_target_is_at_most_a_point_away(
    counts: list[int], rounds: int | None
) -> None:
    found, engine = known(counts, 0.9, limit=4)
    assert found == Relearned(rounds, [count / 100 for count in counts], 0.9)
    asked = [(request.task, request.client, request.round) for request in engine.requests]
    # Only the forget clients are examined; all of them take part in the rounds.
    expected = [("evaluate", "east-0", 0)]
    for round in range(1, len(counts)):
        expected += [("learn", "east-0", round), ("learn", "west-0", round)]
        expected += [("evaluate", "east-0", 0)]
    assert asked == expected


@given(st.integers(1, 100))
def test_exactly_a_point_below_is_back(percent: int) -> None:
    """Whatever the target is in binary."""
    assert known([percent - 1], percent / 100, limit=1)[0].rounds == 0
    if percent > 1:
        assert known([percent - 2, percent - 2], percent / 100, limit=1)[0].rounds is None


def test_without_any_round_allowed_it_is_only_measured() -> None:
    found, _ = known([10], 0.9, limit=0)
    assert (found.rounds, found.curve) == (None, [0.1])


@pytest.fixture(params=[0.0, 0.5])
def case(
    request: pytest.FixtureRequest,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
) -> Case:
    """Four clients, with and without momentum of the server, in rounds of a few steps."""
    changes = {
        "learning__server_momentum": request.param,
        "learning__l2u__generator_epochs": 0.5,
        "learning__l2u__mid_epochs": 0.5,
    }
    return make_case(make_net, tiny_clients[:4], tmp_path, norm="batch", **changes)


def relearned(case: Case, limit: int = 2, observer: Observer | None = None) -> Relearned:
    """Towards more than there is to reach."""
    learning = case.config.learning
    arguments = (learning, case.request, case.buffers, 1.1, limit, observer)
    return relearn(case.federation, case.learned, *arguments)


def test_the_curve_is_that_of_gentle_rounds_with_all_clients(case: Case) -> None:
    found = relearned(case)
    asked = engine_of(case).of_task("learn")
    state = LearningState(dict(case.learned))
    config = going_on(case.config.learning, 2)

    def fa(tensors: Tensors) -> float:
        clients = case.request.forget
        score = evaluate(case.federation, tensors, splits=("train",), clients=clients)
        return score.total("train").correct / score.total("train").samples

    curve = [fa(state.tensors)]
    for _ in range(2):
        clients = case.federation.clients
        learning_round(case.federation, config, state, clients, case.buffers, "other")
        curve.append(fa(state.tensors))
    assert found == Relearned(None, curve, 1.1)
    assert [r.client for r, _ in asked[:4]] == [client.id for client in case.federation.clients]
    assert asked[0][0].settings["learning"] == config.model_dump(mode="json")
    # The very same model was trained in the second round.
    again = engine_of(case).of_task("learn")[8 + 4][0]
    assert same_bits(asked[4][0].tensors, again.tensors)


def test_the_model_stays_as_it_is_and_comes_out_alike_twice(case: Case) -> None:
    before = {name: tensor.clone() for name, tensor in case.learned.items()}
    first = relearned(case)
    assert same_bits(case.learned, before)
    assert relearned(case) == first
    sent = [request.tensors for request, _ in engine_of(case).of_task("learn")]
    assert same_bits(sent[4], sent[8 + 4])
    # The test would notice: the first round changed something.
    assert not same_bits(sent[0], sent[4])


def test_no_other_stage_pays_but_evaluation(case: Case) -> None:
    paid = {"foul": Cost(1, 2, 3, 4, 5.0), "learning": Cost(6)}
    for stage, cost in paid.items():
        case.federation.ledger.record(stage, cost)
    relearned(case, limit=1)
    totals = case.federation.ledger.totals
    assert totals.keys() == {"foul", "learning", "relearn", "evaluation"}
    assert all(totals[stage] == cost for stage, cost in paid.items())
    crossed = engine_of(case).of_task("learn")
    assert totals["relearn"].bytes == sum(r.bytes + a.bytes for r, a in crossed) > 0


def test_observers_hear_of_every_round(case: Case) -> None:
    heard: list[Any] = []

    class Listen(Observer):
        def on_stage(self, stage: str, rounds: int, done: int) -> None:
            heard.append((stage, rounds, done))

        def on_round(self, record: dict[str, Any]) -> None:
            heard.append((record["stage"], record["round"], record["fa"]))

    found = relearned(case, observer=Listen())
    assert heard == [
        ("relearn", 2, 0),
        ("relearn", 1, found.curve[1]),
        ("relearn", 2, found.curve[2]),
    ]
