import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import MakeNet, same_bits
from forget_cases import MakeCase, engine_of, gone, repainted
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn

from foul.data import ClientData
from foul.errors import UserError
from foul.federation.federation import QuorumError
from foul.federation.messages import Reply, Request, Tensors, take_group
from foul.models import deployed_state, normalised
from foul.unlearning import Case, MethodState
from foul.unlearning.fedcdp import applied, chosen, kept, scores
from foul.unlearning.methods import make_method

FAST = ["recovery_rounds=2", "batch_size=8", "cap=0.5"]


def finish(case: Case, *options: str) -> tuple[MethodState, list[dict[str, Any]]]:
    method = make_method("fedcdp", [*FAST, *options])
    state, records = method.start(case), []
    while not state.finished:
        records.append(method.step(case, state))
    return state, records


def pruned(case: Case, *options: str) -> MethodState:
    """The state straight after the cut."""
    return finish(case, *options, "recovery_rounds=0")[0]


# Scores


documents = arrays(
    "float32",
    st.tuples(st.integers(2, 5), st.integers(1, 8)),
    elements=st.floats(0, 10, width=32).map(lambda x: round(x, 3)),
)


@given(documents.map(torch.from_numpy), st.sampled_from(["paper", "code"]))
def test_scores_are_term_frequency_times_inverse_document_frequency(rows: Tensor, idf: Any) -> None:
    found = scores(rows, idf).tolist()
    table = rows.double().tolist()
    count, width = len(table), len(table[0])
    total = sum(table[0])
    for j in range(width):
        term = table[0][j] / total if total else 0.0
        if idf == "paper":
            levels = [sum(row) / width for row in table]
            rest = 1 + count
        else:
            levels = [sum(row[j] for row in table) / count] * count
            rest = count
        margins = [row[j] - level for row, level in zip(table, levels, strict=True)]
        if all(margin == 0 or abs(margin) > 1e-9 for margin in margins):
            rare = math.log(rest / (1 + sum(margin >= 0 for margin in margins)))
            assert found[j] == pytest.approx(term * rare, abs=1e-9)


@given(documents.map(torch.from_numpy))
def test_frequencies_sum_to_one_and_rare_channels_count_more(rows: Tensor) -> None:
    if float(rows[0].sum()) == 0:
        # Dead for the forgotten: no channel is special, and nothing is divided by zero.
        assert not bool(scores(rows).any())
        return
    # With one document alone and all channels equal, the inverse document frequency is log(2 / 2).
    flat = torch.ones(3, 4)
    assert not bool(scores(flat).any())
    found = scores(rows)
    assert bool((found >= -1e-12).all())
    assert float(found.sum()) <= math.log(1 + len(rows)) + 1e-9


def test_a_channel_of_the_forgotten_alone_ranks_first() -> None:
    rows = torch.full((4, 6), 0.5)
    rows[:, 1] = 3.0
    rows[0, 4] = 3.0
    rows[1:, 4] = 0.0
    found = scores(rows)
    assert int(found.argmax()) == 4
    # The one that all have is no word of anyone's, however loud.
    assert float(found[1]) == 0


# The choice


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.floats(0.01, 0.9),
    st.floats(0.05, 0.95),
    st.booleans(),
)
def test_the_best_scores_are_cut_within_the_cap(
    widths: list[int], ratio: float, cap: float, lowest: bool
) -> None:
    generator = torch.Generator().manual_seed(sum(widths))
    ranks = {f"l{n}": torch.rand(w, generator=generator) for n, w in enumerate(widths)}
    cut = chosen(ranks, ratio, cap, lowest)
    room = {layer: math.floor(cap * len(values)) for layer, values in ranks.items()}
    assert sum(int(gone.sum()) for gone in cut.values()) == min(
        round(ratio * sum(widths)), sum(room.values())
    )
    worst = [float(ranks[layer][gone].min()) for layer, gone in cut.items() if bool(gone.any())]
    for layer, lost in cut.items():
        assert int(lost.sum()) <= room[layer]
        left = ranks[layer][~lost]
        # Whoever is left and has room scores no better than any that is cut.
        if worst and not lowest and int(lost.sum()) < room[layer]:
            assert float(left.max()) <= min(worst)


def test_the_direction_can_be_turned_round() -> None:
    ranks = {"a": torch.tensor([0.1, 0.9, 0.5, 0.4]), "b": torch.tensor([0.2, 0.8, 0.0, 0.3])}
    top = chosen(ranks, 0.25, 0.5)
    assert top["a"].tolist() == [False, True, False, False]
    assert top["b"].tolist() == [False, True, False, False]
    low = chosen(ranks, 0.25, 0.5, lowest=True)
    assert low["a"].tolist() == [True, False, False, False]
    assert low["b"].tolist() == [False, False, True, False]


# The cut


def outputs(case: Case, make_net: MakeNet, tensors: Tensors, norm: str) -> Tensors:
    """What comes out of each normalisation layer for random images, in evaluation mode."""
    net = make_net(norm=norm)
    net.load_state_dict(tensors)
    seen: Tensors = {}
    for layer, following in normalised(net).items():
        net.get_submodule(following).register_forward_hook(
            lambda _m, _i, output, layer=layer: seen.update({layer: output.clone()})
        )
    with torch.no_grad():
        net.eval()(torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(7)))
    return seen


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_cut_channels_are_exactly_zero_behind_their_norm_and_stay_so(
    case_for: MakeCase, make_net: MakeNet, norm: str
) -> None:
    case = case_for(norm=norm)
    state, records = finish(case, "ratio=0.25")
    cut = state.numbers["cut"]
    widths = {layer: len(case.learned[f"{layer}.weight"]) for layer in cut}
    assert sum(cut.values()) == round(0.25 * sum(widths.values()))
    assert records[0]["cut"] == cut
    assert all(count <= widths[layer] // 2 for layer, count in cut.items())
    for tensors in (pruned(case_for(norm=norm), "ratio=0.25").tensors, state.tensors):
        for layer, maps in outputs(case, make_net, tensors, norm).items():
            dead = (maps == 0).all(dim=(0, 2, 3))
            filters = (tensors[f"{layer}.weight"] == 0).flatten(1).all(1)
            assert int(dead.sum()) == cut[layer], layer
            assert dead.equal(filters)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_the_mask_travels_and_nothing_grows_again(case_for: MakeCase, norm: str) -> None:
    case = case_for(norm=norm)
    state, _ = finish(case, "ratio=0.25")
    mask = take_group(state.extra, "mask")
    trained = engine_of(case).of_task("train")
    assert trained
    for request, reply in trained:
        assert same_bits(take_group(request.tensors, "mask"), mask)
        for name, keep in mask.items():
            lost = ~keep.expand_as(reply.tensors[name])
            assert bool(lost.any())
            assert not bool(reply.tensors[name][lost].any())
            assert bool(reply.tensors[name][~lost].any())
    # Booleans of one channel each: a thousandth of the model.
    assert sum(t.nbytes for t in mask.values()) < 0.02 * sum(
        t.nbytes for t in deployed_state(case.learned).values()
    )


def test_a_client_that_lets_channels_grow_does_not_bring_them_back(case_for: MakeCase) -> None:
    def grow(request: Request, reply: Reply) -> Reply:
        if request.task != "train" or request.client != "west-0":
            return reply
        return replace(reply, tensors={n: t + 1 for n, t in reply.tensors.items()})

    state, _ = finish(case_for(meddle=grow), "ratio=0.25")
    for name, keep in take_group(state.extra, "mask").items():
        assert not bool(state.tensors[name][~keep.expand_as(state.tensors[name])].any())


def test_masking_is_what_removing_channels_would_do() -> None:
    """On a plain network, where the cut channels and their inputs can simply be left out."""
    generator = torch.Generator().manual_seed(3)

    def convolution(inputs: int, outputs: int) -> Tensor:
        return torch.randn(outputs, inputs, 3, 3, generator=generator)

    tensors = {
        "one.weight": convolution(3, 6),
        "norm.weight": torch.rand(6, generator=generator),
        "norm.bias": torch.rand(6, generator=generator),
        "two.weight": convolution(6, 2),
    }
    images = torch.randn(2, 3, 8, 8, generator=generator)
    gone = torch.tensor([False, True, False, False, True, True])

    def run(values: Tensors, mean: Tensor, deviation: Tensor) -> Tensor:
        maps = nn.functional.conv2d(images, values["one.weight"])
        maps = (maps - mean.view(1, -1, 1, 1)) / deviation.view(1, -1, 1, 1)
        maps = maps * values["norm.weight"].view(1, -1, 1, 1) + values["norm.bias"].view(
            1, -1, 1, 1
        )
        return nn.functional.conv2d(torch.relu(maps), values["two.weight"])

    mean, deviation = torch.randn(6, generator=generator), torch.rand(6, generator=generator) + 1
    masked = applied(tensors, kept({"one": gone}, {"one": "norm"}, tensors))
    removed = {name: tensor[~gone] for name, tensor in tensors.items() if name != "two.weight"}
    removed["two.weight"] = tensors["two.weight"][:, ~gone]
    torch.testing.assert_close(
        run(masked, mean, deviation), run(removed, mean[~gone], deviation[~gone])
    )
    assert not run(masked, mean, deviation).allclose(run(tensors, mean, deviation))


def test_layers_that_lose_nothing_have_no_mask() -> None:
    cut = {"a": torch.tensor([False, False]), "b": torch.tensor([True, False])}
    tensors = {name: torch.ones(2) for name in ("b.bias", "bn.weight", "bn.bias")}
    mask = kept(cut, {"a": "an", "b": "bn"}, tensors)
    assert set(mask) == {"b.weight", "b.bias", "bn.weight", "bn.bias"}
    assert mask["b.weight"].shape == (2, 1, 1, 1)
    assert mask["bn.bias"].tolist() == [False, True]


# Who is asked, and for what


def test_forget_clients_are_asked_once_for_one_pass(case_for: MakeCase) -> None:
    case = case_for()
    finish(case)
    crossed = engine_of(case).crossed
    assert {r.task for r, _ in crossed if r.client.startswith("east")} == {"channels"}
    assert {r.client for r, _ in crossed if r.task == "train"} == {
        client.id for client in case.request.retain
    }
    channels = engine_of(case).of_task("channels")
    assert sorted(r.client for r, _ in channels) == sorted(c.id for c in case.federation.clients)
    width = sum(len(case.learned[f"{layer}.weight"]) for layer in channels[0][0].settings["layers"])
    for _, reply in channels:
        assert sum(t.nbytes for t in reply.tensors.values()) == 4 * width
    total = case.federation.ledger.total("fedcdp")
    assert total.bytes_down == sum(r.bytes for r, _ in crossed)
    assert total.bytes_up == sum(reply.bytes for _, reply in crossed)


def uneven(client: ClientData) -> ClientData:
    size = 3 if client.id.endswith("0") else 27
    return replace(client, train=client.train.subset(list(range(size))))


@pytest.mark.parametrize(
    ("forget", "domains"),
    [
        ("domain:east", 3),
        ("client:east-0", 4),
        ("client:east-0,west-1", 4),
        ("domain:east,west", 2),
    ],
)
def test_documents_are_the_forgotten_and_the_retained_domains(
    case_for: MakeCase,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    forget: str,
    domains: int,
) -> None:
    """In each, clients count by their samples."""
    stacked: list[Tensor] = []

    def noted(rows: Tensor, idf: Any) -> Tensor:
        stacked.append(rows)
        return scores(rows, idf)

    monkeypatch.setattr("foul.unlearning.fedcdp.scores", noted)
    case = case_for(forget, clients=[uneven(client) for client in tiny_clients])
    state = pruned(case)
    replies = {r.client: reply for r, reply in engine_of(case).of_task("channels")}
    for place, layer in enumerate(state.numbers["cut"]):
        rows = stacked[place]
        assert len(rows) == 1 + domains
        retain = case.request.retain
        groups = [[c.id for c in case.request.forget]]
        groups += [
            [c.id for c in retain if c.domain == domain]
            for domain in sorted({c.domain for c in retain})
        ]
        for row, group in zip(rows, groups, strict=True):
            sizes = [3 if client.endswith("0") else 27 for client in group]
            sums = [n * replies[c].tensors[layer] for n, c in zip(sizes, group, strict=True)]
            torch.testing.assert_close(row, torch.stack(sums).sum(0) / sum(sizes))


def test_activations_can_be_taken_behind_the_norm(case_for: MakeCase) -> None:
    before, behind = case_for(), case_for()
    one, other = pruned(before), pruned(behind, "after_norm=true")
    layers = [engine_of(c).of_task("channels")[0][0].settings["layers"] for c in (before, behind)]
    assert layers[0][0] == "E.conv1"
    assert layers[1][0] == "E.bn1"
    assert one.numbers["cut"].keys() == other.numbers["cut"].keys()
    assert sum(one.numbers["cut"].values()) == sum(other.numbers["cut"].values())
    assert not same_bits(one.tensors, other.tensors)


def test_the_forgotten_decide_what_is_cut(
    case_for: MakeCase, tiny_clients: tuple[ClientData, ...]
) -> None:
    masks = [
        take_group(pruned(case, "ratio=0.25").extra, "mask")
        for case in (
            case_for(),
            case_for("domain:west"),
            case_for(clients=repainted(tiny_clients, "east")),
        )
    ]
    assert not same_bits(masks[0], masks[1])
    assert not same_bits(masks[0], masks[2])


def test_options_of_the_authors_code_cut_others(case_for: MakeCase) -> None:
    plain = pruned(case_for(), "ratio=0.25").extra
    for option in ("lowest=true", "idf=code"):
        assert not same_bits(pruned(case_for(), "ratio=0.25", option).extra, plain), option


# Failures


def test_the_codes_rarity_needs_two_retained_domains(case_for: MakeCase) -> None:
    two = torch.tensor([[4.0, 1.0, 0.0], [1.0, 4.0, 0.0]])
    assert float(scores(two, "code").max()) == 0.0  # why: nothing ranks first
    case = case_for()
    domain = case.request.retain[0].domain
    alone = tuple(client for client in case.request.retain if client.domain == domain)
    case = replace(case, request=replace(case.request, retain=alone))
    with pytest.raises(UserError, match=f"one retained domain \\({domain}\\)"):
        pruned(case, "idf=code")
    pruned(case, "idf=paper")


@pytest.mark.parametrize(
    ("away", "task", "round"), [("east", "channels", 0), ("", "channels", 0), ("", "train", 1)]
)
def test_a_round_that_fails_leaves_the_state_as_it_was(
    case_for: MakeCase, away: str, task: str, round: int
) -> None:
    case, method = case_for(), make_method("fedcdp", FAST)
    state = method.start(case)
    for _ in range(round):
        method.step(case, state)
    before = MethodState(dict(state.tensors), dict(state.extra), dict(state.numbers), state.round)
    engine_of(case).meddle = gone(away, task)
    with pytest.raises(QuorumError):
        method.step(case, state)
    assert (state.round, state.numbers, state.finished) == (round, before.numbers, "")
    assert same_bits(state.tensors, before.tensors)
    assert same_bits(state.extra, before.extra)


def test_a_retained_domain_that_is_away_is_no_document(case_for: MakeCase) -> None:
    state, records = finish(case_for(meddle=gone("west", "channels")))
    assert state.finished == "all 3 rounds done"
    assert set(records[0]["failures"]) == {"west-0", "west-1"}


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_resumed_it_ends_with_the_same_bits(case_for: MakeCase, norm: str) -> None:
    whole, _ = finish(case_for(norm=norm))
    case = case_for(norm=norm)
    state = make_method("fedcdp", FAST).start(case)
    while not state.finished:
        make_method("fedcdp", FAST).step(case, state)
    assert same_bits(whole.tensors, state.tensors)


def test_more_than_the_cap_cannot_be_asked_for() -> None:
    with pytest.raises(UserError, match=r"ratio=0\.6 .* cap=0\.3"):
        make_method("fedcdp", ["ratio=0.6", "cap=0.3"])
