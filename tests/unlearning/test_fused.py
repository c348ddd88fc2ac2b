from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet, same_bits
from forget_cases import MakeCase, engine_of, gone, repainted

from foul.data import ClientData
from foul.errors import UserError
from foul.federation.federation import QuorumError
from foul.federation.messages import Reply, Request, Tensors, join_groups, take_group
from foul.learning.adapters import SparseAdapters, make_adapters
from foul.models import deployed_state
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.unlearning import Case, Method, MethodState
from foul.unlearning.fused import distances, layers_of, without_adapters
from foul.unlearning.methods import make_method

FAST = ["layers=3", "adapter_rounds=2", "batch_size=8", "adapter_rate=0.1"]
BOTH = ["fused", "fused-lora"]


def method_of(name: str, *options: str) -> Method[Any]:
    return make_method(name, [*FAST, *options])


def finish(case: Case, method: Method[Any]) -> tuple[MethodState, list[dict[str, Any]]]:
    state, records = method.start(case), []
    while not state.finished:
        records.append(method.step(case, state))
    return state, records


# The choice of layers


def test_layers_are_modules_with_their_biases_and_without_norms(case_for: MakeCase) -> None:
    layers = layers_of(case_for(norm="batch").learned)
    assert layers["head"] == ["head.weight", "head.bias"]
    assert layers["E.conv1"] == ["E.conv1.weight"]
    assert layers["K.layer2.0.conv1"] == ["K.layer2.0.conv1.weight"]
    assert not any("bn" in layer or layer.startswith("D.") for layer in layers)


def test_the_distance_is_the_sum_of_absolute_changes() -> None:
    change = {
        "a.weight": torch.tensor([[1.0, -2.0], [0.0, 3.0]]),
        "a.bias": torch.tensor([-0.5]),
        "b.weight": torch.tensor([[4.0]]),
    }
    found = distances(change, {"a": ["a.weight", "a.bias"], "b": ["b.weight"]})
    assert {name: float(value) for name, value in found.items()} == {"a": 6.5, "b": 4.0}


def test_the_layers_that_all_clients_change_most_are_chosen(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    """Weighted by samples, forget clients included."""

    def uneven(client: ClientData) -> ClientData:
        size = 9 if client.id.endswith("0") else 27
        return replace(client, train=client.train.subset(list(range(size))))

    case = case_for(clients=[uneven(client) for client in tiny_clients])
    method = method_of("fused")
    state = method.start(case)
    record = method.step(case, state)
    replies = [reply for _, reply in engine_of(case).of_task("survey")]
    assert sorted(r.client for r in replies) == sorted(c.id for c in case.federation.clients)
    assert {r.numbers["samples"] for r in replies} == {9, 27}
    layers = layers_of(case.learned)
    expected: dict[str, float] = {}
    for layer, names in layers.items():
        moved = [
            (r.numbers["samples"], sum(float(r.tensors[n].double().abs().sum()) for n in names))
            for r in replies
        ]
        expected[layer] = sum(n * d for n, d in moved) / sum(n for n, _ in moved)
    assert record["distances"] == pytest.approx(expected)
    ranking = sorted(expected, key=lambda layer: -expected[layer])
    assert record["layers"] == state.numbers["layers"] == ranking[:3]
    size = sum(case.learned[name].numel() for name in layers["head"])
    assert record["mean_distances"]["head"] == pytest.approx(expected["head"] / size)
    assert same_bits(state.tensors, case.learned)


# Adapters


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize("name", BOTH)
def test_without_its_adapters_it_is_the_learned_model_bit_for_bit(
    case_for: MakeCase, tmp_path: Path, name: str, norm: str
) -> None:
    case = case_for(norm=norm)
    state, _ = finish(case, method_of(name))
    changed = {n for n in case.learned if not state.tensors[n].equal(case.learned[n])}
    base = take_group(state.extra, "base")
    assert changed
    # Statistics of normalisation layers are as they were, too.
    assert changed <= set(base)
    assert {n.rpartition(".")[0] for n in changed} == set(state.numbers["layers"])
    assert same_bits(without_adapters(state), case.learned)
    # Also from a file.
    file = tmp_path / "state.safetensors"
    save_tensors(file, join_groups({"model": state.tensors, "extra": state.extra}), {})
    loaded, _ = load_tensors(file)
    again = MethodState(take_group(loaded, "model"), take_group(loaded, "extra"))
    assert same_bits(without_adapters(again), case.learned)


@pytest.mark.parametrize("name", BOTH)
def test_before_and_after_the_choice_the_state_can_be_saved(
    case_for: MakeCase, tmp_path: Path, name: str
) -> None:
    case, method = case_for(), method_of(name)
    state = method.start(case)
    for number in range(2):
        tensors = join_groups({"model": state.tensors, "extra": state.extra})
        save_tensors(tmp_path / f"{number}.safetensors", tensors, {"numbers": state.numbers})
        assert same_bits(load_tensors(tmp_path / f"{number}.safetensors")[0], tensors)
        method.step(case, state)


def averaged(case: Case, round: int) -> Tensors:
    """The mean change of the adapters in this round; all clients have as many samples."""
    rows = [p.tensors for r, p in engine_of(case).of_task("adapt") if r.round == round]
    return {name: torch.stack([row[name] for row in rows]).mean(0) for name in rows[0]}


@pytest.mark.parametrize("name", BOTH)
def test_what_is_deployed_is_the_learned_model_and_the_mean_of_the_adapters(
    case_for: MakeCase, name: str
) -> None:
    case, method = case_for(), method_of(name)
    state, _ = finish(case, method)
    base = take_group(state.extra, "base")
    form = method.options.form()
    adapters = make_adapters(base, **form, seed=0)
    first = next(r for r, _ in engine_of(case).of_task("adapt") if r.round == 2)
    assert same_bits(first.tensors, adapters.start())
    values = take_group(state.extra, "adapters")
    for key, value in values.items():
        expected = adapters.start()[key] + averaged(case, 2)[key] + averaged(case, 3)[key]
        torch.testing.assert_close(value, expected)
        assert bool(averaged(case, 2)[key].any())
    for key, tensor in adapters.adapted(values).items():
        assert state.tensors[key].equal(tensor)
        assert not tensor.equal(case.learned[key])


def test_sparse_adapters_change_the_places_of_the_shared_mask_alone(case_for: MakeCase) -> None:
    case = case_for()
    state, _ = finish(case, method_of("fused", "density=0.1"))
    adapters = SparseAdapters(take_group(state.extra, "base"), 0, 0.1)
    for name, places in adapters.places.items():
        change = (state.tensors[name] - case.learned[name]).flatten()
        outside = torch.ones(len(change), dtype=torch.bool).index_fill(0, places, False)
        assert not bool(change[outside].any())
        assert len(places) == max(1, round(0.1 * len(change)))


# Traffic


@pytest.mark.parametrize("name", BOTH)
def test_only_the_adapters_travel_and_the_model_once(case_for: MakeCase, name: str) -> None:
    case = case_for()
    state, records = finish(case, method_of(name))
    base = take_group(state.extra, "base")
    if name == "fused":
        values = sum(max(1, round(0.08 * tensor.numel())) for tensor in base.values())
    else:
        values = sum(4 * (len(t) + t[0].numel()) for t in base.values() if t.dim() > 1)

    def size(tensors: Tensors) -> int:
        return sum(tensor.nbytes for tensor in tensors.values())

    model = size(deployed_state(case.learned))
    for request, reply in engine_of(case).of_task("adapt"):
        assert size(request.tensors) == size(reply.tensors) == 4 * values
    kept, surveyed = engine_of(case).of_task("keep"), engine_of(case).of_task("survey")
    assert sorted(r.client for r, _ in kept) == sorted(c.id for c in case.federation.clients)
    assert {size(r.tensors) for r, _ in kept} == {model}
    assert {(size(r.tensors), size(p.tensors)) for r, p in surveyed} == {(0, model)}
    crossed = engine_of(case).crossed
    total = case.federation.ledger.total("fused")
    assert total.bytes_down == sum(r.bytes for r, _ in crossed)
    assert total.bytes_up == sum(reply.bytes for _, reply in crossed)
    # The records tell all of it.
    costs = [cost for record in records for cost in record["costs"].values()]
    assert sum(cost["bytes_down"] for cost in costs) == total.bytes_down
    assert sum(cost["bytes_up"] for cost in costs) == total.bytes_up


@pytest.mark.parametrize("name", BOTH)
def test_the_defaults_travel_for_a_few_percent_of_the_model(make_net: MakeNet, name: str) -> None:
    """Four large layers of the network for images of 28 pixels."""
    state = make_net(backbone="small", k_channels=24, v_channels=8).state_dict()
    layers = [f"V.layer{stage}.0.conv{n}.weight" for stage in (2, 3) for n in (1, 2)]
    options = make_method(name).options
    adapters = make_adapters({n: state[n] for n in layers}, **options.form(), seed=0)
    values = sum(tensor.numel() for tensor in adapters.start().values())
    model = sum(t.numel() for t in deployed_state(dict(state)).values())
    assert 0.02 < values / model < 0.03


@pytest.mark.parametrize("name", BOTH)
def test_forget_clients_only_help_to_choose(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...], name: str
) -> None:
    case = case_for()
    finish(case, method_of(name))
    asked = {r.task for r, _ in engine_of(case).crossed if r.client.startswith("east")}
    assert asked == {"keep", "survey"}
    adapted = [r.client for r, _ in engine_of(case).of_task("adapt")]
    assert set(adapted) == {client.id for client in case.request.retain}
    # Where there is nothing to choose, their pixels do not matter.
    every = f"layers={len(layers_of(case.learned))}"
    cases = [case_for(), case_for(clients=repainted(tiny_clients, "east"))]
    cases.append(case_for(clients=repainted(tiny_clients, "west")))
    one, same, other = (finish(c, method_of(name, every, "adapter_rounds=1"))[0] for c in cases)
    assert same_bits(one.tensors, same.tensors)
    assert not same_bits(one.tensors, other.tensors)


# Failures


@pytest.mark.parametrize("name", BOTH)
def test_another_process_finds_the_model_or_sends_it_again(case_for: MakeCase, name: str) -> None:
    whole, _ = finish(case_for(), method_of(name))
    case = case_for()
    state = method_of(name).start(case)
    while not state.finished:
        method_of(name).step(case, state)
    assert same_bits(whole.tensors, state.tensors)
    assert same_bits(whole.extra, state.extra)
    # Clients that have lost it are sent it once more.
    first = case_for()
    state = method_of(name).start(first)
    method_of(name).step(first, state)
    second = case_for()
    method = method_of(name)
    while not state.finished:
        method.step(second, state)
    assert same_bits(whole.tensors, state.tensors)
    sent = [r.client for r, _ in engine_of(second).of_task("keep") if r.tensors]
    assert sorted(sent) == sorted(client.id for client in second.request.retain)


def test_a_client_that_was_away_is_sent_the_model_later(case_for: MakeCase) -> None:
    def away(request: Request, reply: Reply) -> Reply:
        missing = request.client == "west-0" and request.round <= 2
        return Reply(request.client, error="gone") if missing else reply

    case = case_for(meddle=away)
    state, records = finish(case, method_of("fused"))
    assert state.finished == "all 3 rounds done"
    sent = [r.round for r, _ in engine_of(case).of_task("keep") if r.client == "west-0"]
    assert sent == [1, 2, 3]
    assert [set(record["failures"]) for record in records] == [{"west-0"}, {"west-0"}, set()]


@pytest.mark.parametrize(
    ("away", "task", "round"), [("east", "survey", 0), ("", "survey", 0), ("", "adapt", 1)]
)
def test_a_round_that_fails_leaves_the_state_as_it_was(
    case_for: MakeCase, away: str, task: str, round: int
) -> None:
    case, method = case_for(), method_of("fused")
    state = method.start(case)
    for _ in range(round):
        method.step(case, state)
    before = MethodState(dict(state.tensors), dict(state.extra), dict(state.numbers))
    engine_of(case).meddle = gone(away, task)
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert (state.round, state.numbers, state.finished) == (round, before.numbers, "")
    assert same_bits(state.tensors, before.tensors)
    assert same_bits(state.extra, before.extra)
    # And the round can be done again.
    engine_of(case).meddle = lambda _, reply: reply
    method.step(case, state)
    assert state.round == round + 1


def test_more_layers_than_there_are_cannot_be_chosen(case_for: MakeCase) -> None:
    with pytest.raises(UserError, match=r"layers=99: this network has only \d+ .*at most layers="):
        make_method("fused", ["layers=99"]).start(case_for())
