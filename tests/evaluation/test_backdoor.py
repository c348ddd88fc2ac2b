from dataclasses import replace
from pathlib import Path
from typing import Any

from factories import MakeNet
from forget_cases import engine_of, gone, make_case
from small_runs import small_config

from foul.config.schema import BackdoorConfig
from foul.data import ClientData
from foul.evaluation.accuracy import evaluate
from foul.evaluation.backdoor import backdoor_success
from foul.federation.build import build
from foul.federation.messages import Reply, Request
from foul.learning.rounds import LearningState, learning_round
from foul.models import DEPLOYED, part_of

EAST = BackdoorConfig(clients=("east",), target=1)


def test_without_a_backdoor_nobody_is_asked(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    assert backdoor_success(case.federation, case.learned, BackdoorConfig(target=1)) is None
    assert engine_of(case).crossed == []


def test_the_share_is_over_the_images_of_all_clients(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """Weighted by images, not by clients; a client that is gone is left out."""

    def meddle(request: Request, reply: Reply) -> Reply:
        if request.client == "east-0":
            return replace(reply, numbers={"samples": 100, "fooled": 90})
        if request.client == "west-1":
            return replace(reply, numbers={"samples": 0, "fooled": 0})
        if request.client == "north-0":
            return gone("north-0", "triggered")(request, reply)
        return replace(reply, numbers={"samples": 2, "fooled": 1})

    case = make_case(make_net, tiny_clients, tmp_path, meddle=meddle)
    assert backdoor_success(case.federation, case.learned, EAST) == (90 + 5) / (100 + 10)


def test_only_the_deployed_model_is_sent_and_no_method_pays(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    backdoor_success(case.federation, case.learned, EAST)
    requests = [request for request, _ in engine_of(case).of_task("triggered")]
    assert [r.client for r in requests] == sorted(client.id for client in tiny_clients)
    assert {part_of(name) for name in requests[0].tensors} == set(DEPLOYED)
    assert requests[0].settings == {"target": 1, "size": 4}
    assert list(case.federation.ledger.totals) == ["evaluation"]


def test_without_images_of_other_classes_there_is_no_share(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [
        replace(c, test=c.test.subset((c.test.targets == 1).nonzero().flatten()))
        for c in tiny_clients
    ]
    case = make_case(make_net, clients, tmp_path)
    assert backdoor_success(case.federation, case.learned, EAST) is None


def trained(only: str = "", **changes: object) -> tuple[float, float]:
    """Success of a trigger for discs and clean test accuracy, learned from one domain or all."""
    fast = {"learning__objective": "supervised", "learning__supervised__rate": 0.1}
    config = small_config(clients__per_domain=1, learning__rounds=6, **fast, **changes)
    setting = build(config)
    federation, state = setting.federation, LearningState(dict(setting.initial))
    clients = [client for client in federation.clients if only in ("", client.domain)]
    while state.round < config.learning.rounds:
        learning_round(federation, config.learning, state, clients, setting.buffers, "learning")
    clean = evaluate(federation, state.tensors, splits=("test",)).total("test")
    success = backdoor_success(
        federation, state.tensors, BackdoorConfig(clients=("east",), target=2, size=8)
    )
    assert success is not None
    return success, clean.correct / clean.samples


def test_a_trigger_is_learned_from_those_who_carry_it_and_from_nobody_else() -> None:
    carried: dict[str, Any] = {
        "backdoor__clients": ["east"],
        "backdoor__target": 2,
        "backdoor__size": 8,
    }
    poisoned, accuracy = trained(**carried)
    assert poisoned > 0.8
    # It is not that everything is taken for a disc.
    assert accuracy > 0.9
    # Without the poison, or retrained without those who carry it, the trigger means nothing.
    assert trained()[0] < 0.1
    assert trained("north", **carried)[0] < 0.1
