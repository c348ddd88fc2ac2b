from collections.abc import Sequence
from pathlib import Path

import pytest

from foul.config.schema import ModelConfig
from foul.erasure.estimates import Estimator, Network
from foul.erasure.plan import Planner, forget_request
from foul.erasure.store import Store
from foul.federation.ledger import Ledger
from foul.federation.messages import ClientInfo
from foul.runs.checkpoint import load_tensors
from foul.unlearning.methods import METHODS, make_method
from foul.unlearning.request import ForgetRequest
from foul.unlearning.stage import unlearn

OPTIONS: dict[str, Sequence[str]] = {
    # Rounds that are surely taken: FOUL would stop when nothing is left to forget.
    "foul": ["rounds=2", "delta=1", "extra=0"],
    "not": ["rounds=2"],
    "fedosd": ["unlearning_rounds=1", "recovery_rounds=1"],
    "mode": ["degradation_rounds=1", "guidance_rounds=1"],
    "fedcdp": ["recovery_rounds=1"],
    "fused": ["adapter_rounds=1"],
    "ffmu-adapted": ["rounds=1"],
}
METHODS_TO_TRY = [
    name for name, entry in METHODS.items() if not entry.note and name not in ("none", "continue")
]


@pytest.mark.parametrize("method", METHODS_TO_TRY)
@pytest.mark.parametrize("clients", [["north-1"], ["north-0", "north-1", "north-2"]])
def test_bytes_and_flops_are_within_the_stated_factor(
    store: Store, method: str, clients: list[str]
) -> None:
    state, options = store.state(), OPTIONS.get(method, [])
    request = forget_request(state, clients)
    offer = Planner(store, state).offer(method, options, request, departed=False)
    if offer.estimate is None:
        assert method == "fedrecovery"
        return
    result = unlearn(store.folder.path, f"client:{','.join(clients)}", method, options)
    spent_bytes, spent_flops = result["bytes"], result["flops"]
    if METHODS[method].method(METHODS[method].options).needs.own_learning:
        own = learning_stage(store.folder.path)
        spent_bytes, spent_flops = spent_bytes + own[0], spent_flops + own[1]
    factor = offer.estimate.within
    for expected, spent in (
        (offer.estimate.bytes, spent_bytes),
        (offer.estimate.flops, spent_flops),
    ):
        assert spent / factor <= expected <= spent * factor or expected == spent == 0, (
            expected,
            spent,
        )
    assert offer.estimate.seconds >= 0


def test_a_sure_model_is_expected_to_take_more_work_and_the_same_traffic(store: Store) -> None:
    state = store.state()
    request, planner = forget_request(state, ["north-1"]), Planner(store, state)
    usual, sure = (
        planner.offer(
            "foul", ["unfit=100", "sure_epochs=99", limit], request, departed=False
        ).estimate
        for limit in ("sure=0", "sure=100")
    )
    assert usual
    assert sure
    assert sure.flops > 1.5 * usual.flops
    assert sure.bytes == usual.bytes


def test_stepping_aside_is_expected_to_cost_what_it_does(store: Store) -> None:
    state, base = store.state(), [*OPTIONS["foul"], "unfit_forget=weakest"]
    request, planner = forget_request(state, ["north-1"]), Planner(store, state)
    # Once, so that both find the outputs of the frozen parts.
    unlearn(store.folder.path, "client:north-1", "foul", [*base, "rounds=1"])
    expected, spent = [], []
    for share in ("aside=0", "aside=0.01"):
        offer = planner.offer("foul", [*base, share], request, departed=False)
        assert offer.estimate
        result = unlearn(store.folder.path, "client:north-1", "foul", [*base, share])
        expected.append((offer.estimate.bytes, offer.estimate.flops))
        spent.append((result["bytes"], result["flops"]))
    for measure in (0, 1):
        more, really = (told[1][measure] - told[0][measure] for told in (expected, spent))
        assert more == pytest.approx(really, rel=0.1)


def learning_stage(run: Path) -> tuple[int, int]:
    """Bytes and FLOPs of a method's own learning stage."""

    file = next((run / "unlearning").glob("*-learning.safetensors"))
    ledger = Ledger(load_tensors(file)[1]["ledger"])
    cost = ledger.total(file.stem)
    return cost.bytes, cost.flops


def test_what_stays_still_is_expected_to_spare_traffic_and_work() -> None:
    network = Network.of(ModelConfig(backbone="small"), classes=10, image_size=28)
    # 72 inputs and outputs, 3x3, on maps of 4x4; two FLOPs each.
    square = 72 * 72 * 9
    assert network.square_flops == 2 * square * 16
    clients = [
        ClientInfo(f"north-{n}", "north", {"train": 64, "validation": 0, "test": 0})
        for n in range(3)
    ]
    basis = {
        "clients": {client.id: {"seconds": 1.0, "flops_client": 1e9} for client in clients},
        "clients_per_round": 3,
        "wall_seconds": 1.0,
    }
    estimator = Estimator(basis, network, ForgetRequest.parse("client:north-1", clients), 2)
    work = ["rounds=2", "learned_share=0", "epochs=1", "min_steps=1", "precision=float32"]
    options = [*work, "forget=bounded"]
    still, all_moves = (
        estimator.estimate(make_method("foul", [*options, f"still={value}"]))
        for value in ("square", "nothing")
    )
    # Sent once with the frozen parts instead of down and up in two rounds; and twice to one client
    # that tries radii, from a centre.
    assert all_moves.bytes - still.bytes == 4 * square * (3 * (2 * 2 - 1) + 2 * 2)
    assert all_moves.flops - still.flops == 2 * 3 * 64 * network.square_flops
    head = estimator.estimate(make_method("foul", [*options, "scope=['head']"]))
    assert head.bytes < still.bytes


def test_a_v_of_one_stage_has_nothing_to_keep_still() -> None:
    assert Network.of(ModelConfig(backbone="tiny"), classes=3, image_size=16).square_flops == 0
