from collections.abc import Mapping, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foul.federation.messages import ClientInfo, Tensors
from foul.learning.history import History, corrected, residuals

SAMPLES = {"a-0": 10, "a-1": 30, "b-0": 20, "b-1": 5, "c-0": 15}
CLIENTS = [ClientInfo(name, name[0], {"train": count}) for name, count in SAMPLES.items()]
Round = Mapping[str, Tensor]
"""Each participant's update."""


def rounds(seed: int, count: int, absent: Sequence[str] = ()) -> list[Round]:
    generator = torch.Generator().manual_seed(seed)
    return [
        {
            name: torch.randn(6, generator=generator, dtype=torch.float64) + number
            for name in SAMPLES
            if name not in absent
        }
        for number in range(count)
    ]


def add(history: History, updates: Sequence[Round]) -> None:
    for update in updates:
        for client, tensor in update.items():
            history.add(client, named(tensor))
        history.end_round()


def named(tensor: Tensor) -> Tensors:
    """As an update of a network: a weight, a statistic, and a part that is not deployed."""
    return {"E.w": tensor, "E.running_mean": tensor.clone(), "D.w": tensor.clone()}


def make(kind: str = "domains") -> History:
    return History.of(kind, CLIENTS, frozenset({"E.running_mean"}))


def mean(update: Round, without: str = "-") -> Tensor:
    """The weighted mean of those whose name does not begin like this."""
    names = [name for name in update if not name.startswith(without)]
    total = sum(SAMPLES[name] for name in names)
    return torch.stack([update[name] * SAMPLES[name] for name in names]).sum(0) / total


@given(st.integers(0, 999), st.integers(1, 4), st.sampled_from("abc"))
def test_streamed_equals_kept(seed: int, count: int, group: str) -> None:
    updates, history = rounds(seed, count), make()
    add(history, updates)
    squares = [mean(update).square().sum() for update in updates]
    weights = [square / sum(squares) for square in squares]
    assert float(sum(weights)) == pytest.approx(1)
    differences = [mean(update) - mean(update, group) for update in updates]
    naive = sum(w * d for w, d in zip(weights, differences, strict=True))
    streamed = history.residuals[f"domain:{group}"]["E.w"] / history.weight
    torch.testing.assert_close(streamed, naive, atol=1e-12, rtol=1e-9)
    # The third form: alpha_F (mean_F - mean_R).
    share = sum(n for c, n in SAMPLES.items() if c[0] == group) / sum(SAMPLES.values())
    others = "".join(sorted({c[0] for c in SAMPLES} - {group}))
    for update, difference in zip(updates, differences, strict=True):
        inside = {name: u for name, u in update.items() if name[0] not in others}
        third = share * (mean(inside) - mean(update, group))
        torch.testing.assert_close(difference, third, atol=1e-12, rtol=0)


def test_one_round_is_undone_exactly() -> None:
    (update,), history = rounds(0, 1), make()
    add(history, [update])
    start = torch.zeros(6, dtype=torch.float64)
    after = {"E.w": start + mean(update)}
    undone = corrected(after, history.residuals["domain:b"], history.weight)
    torch.testing.assert_close(undone["E.w"], start + mean(update, "b"), atol=1e-12, rtol=0)
    # Twice the scale goes twice as far.
    twice = corrected(after, history.residuals["domain:b"], history.weight, 2)
    torch.testing.assert_close(
        twice["E.w"] - after["E.w"], 2 * (undone["E.w"] - after["E.w"]), atol=1e-12, rtol=0
    )


@given(st.integers(0, 999))
def test_the_correction_goes_against_what_the_group_alone_wanted(seed: int) -> None:
    updates, history = rounds(seed, 1), make("clients")
    add(history, updates)
    after = {"E.w": torch.zeros(6, dtype=torch.float64)}
    step = corrected(after, history.residuals["client:c-0"], history.weight)["E.w"]
    assert step @ (updates[0]["c-0"] - mean(updates[0], "c")) < 0


def test_a_group_that_goes_the_common_way_changes_nothing() -> None:
    same = torch.ones(6, dtype=torch.float64)
    history = make()
    add(history, [dict.fromkeys(SAMPLES, same)])
    torch.testing.assert_close(history.residuals["domain:a"]["E.w"], 0 * same, atol=1e-12, rtol=0)


def test_only_trained_weights_of_deployed_parts_are_kept() -> None:
    history = make()
    add(history, rounds(0, 1))
    assert {tuple(kept) for kept in history.residuals.values()} == {("E.w",)}


def test_groups_are_named_like_requests() -> None:
    assert list(make("domains").residuals) == ["domain:a", "domain:b", "domain:c"]
    assert list(make("clients").residuals) == [f"client:{name}" for name in SAMPLES]


def test_a_group_that_was_away_changed_nothing_and_one_that_was_alone_is_left_out() -> None:
    away, alone, whole = make(), make(), make()
    add(whole, rounds(0, 1))
    add(away, rounds(0, 1))
    add(away, rounds(1, 1, absent=["b-0", "b-1"]))
    assert away.residuals["domain:b"]["E.w"].equal(whole.residuals["domain:b"]["E.w"])
    assert not away.residuals["domain:a"]["E.w"].equal(whole.residuals["domain:a"]["E.w"])
    assert away.weight > whole.weight
    add(alone, rounds(1, 1, absent=["a-0", "a-1", "c-0"]))
    assert alone.residuals == {"domain:a": {}, "domain:b": {}, "domain:c": {}}


def test_a_round_without_anybody_is_counted_and_nothing_else() -> None:
    history = make()
    history.end_round()
    assert (history.rounds, history.weight) == (1, 0.0)
    tensors = {"E.w": torch.ones(2)}
    assert corrected(tensors, history.residuals["domain:a"], history.weight) == tensors


def test_it_goes_on_from_what_was_saved() -> None:
    updates = rounds(3, 4)
    whole, first, second = make(), make(), make()
    add(whole, updates)
    add(first, updates[:2])
    tensors, numbers = first.state()
    second.restore(tensors, numbers)
    add(second, updates[2:])
    assert (second.rounds, second.weight) == (4, whole.weight)
    for group, kept in residuals(*second.state()).items():
        assert kept["E.w"].equal(whole.residuals[group]["E.w"])


def test_two_clients_of_a_group_are_one_joint_residual() -> None:
    updates, domains, clients = rounds(0, 1), make("domains"), make("clients")
    add(domains, updates)
    add(clients, updates)
    both = clients.residuals["client:a-0"]["E.w"] + clients.residuals["client:a-1"]["E.w"]
    assert not torch.allclose(domains.residuals["domain:a"]["E.w"], both)
