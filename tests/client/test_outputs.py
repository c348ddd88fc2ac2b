from dataclasses import replace

import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot
from hypothesis import given
from hypothesis import strategies as st

from foul.client import forward
from foul.client.outputs import aligned
from foul.data import ClientData, to_float
from foul.federation.messages import Request
from foul.models import deployed_state

SPLITS = ["train", "test"]

rows = st.lists(
    st.tuples(st.lists(st.integers(-9, 9), min_size=4, max_size=4), st.integers(0, 3)),
    min_size=1,
    max_size=5,
)


@given(rows)
def test_the_true_class_is_first_and_the_rest_is_sorted(
    samples: list[tuple[list[int], int]],
) -> None:
    logits = torch.tensor([values for values, _ in samples], dtype=torch.float32)
    labels = torch.tensor([label for _, label in samples])
    before = logits.clone()
    found = aligned(logits, labels).tolist()
    for row, (values, label) in zip(found, samples, strict=True):
        rest = values[:label] + values[label + 1 :]
        assert row == [values[label], *sorted(rest, reverse=True)]
    assert logits.equal(before)


@given(rows, st.permutations(range(4)))
def test_it_does_not_say_which_class_it_was(
    samples: list[tuple[list[int], int]], order: list[int]
) -> None:
    logits = torch.tensor([values for values, _ in samples], dtype=torch.float32)
    labels = torch.tensor([label for _, label in samples])
    renamed = torch.tensor([order.index(int(label)) for label in labels])
    assert aligned(logits, labels).equal(aligned(logits[:, order], renamed))


@pytest.mark.parametrize("head", ["joint", "causal"])
@pytest.mark.parametrize("batch", [5, 256])
def test_logits_are_those_of_one_image_at_a_time(
    make_net: MakeNet,
    make_worker: MakeWorker,
    tiny_clients: tuple[ClientData, ...],
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    batch: int,
) -> None:
    monkeypatch.setattr(forward, "EVALUATION_BATCH", batch)
    net, client = make_net(seed=4, head=head).eval(), tiny_clients[1]
    sent = deployed_state(snapshot(net))
    reply = make_worker(head=head).perform(
        Request(client.id, "outputs", 0, sent, {"splits": SPLITS})
    )
    assert reply.error == ""
    # Neither labels nor places nor anything else of a sample.
    assert (set(reply.tensors), reply.numbers) == ({"train", "test"}, {})
    for split in SPLITS:
        samples = getattr(client, split)
        assert reply.tensors[split].shape == (len(samples), 3)
        for row in range(len(samples)):
            image, label = samples.batch(torch.tensor([row]))
            with torch.no_grad():
                logits = net(to_float(image))[0].tolist()
            true = logits.pop(int(label))
            expected = [true, *sorted(logits, reverse=True)]
            assert reply.tensors[split][row].tolist() == pytest.approx(expected, abs=1e-4)


def test_places_say_which_sample_it_is(
    make_net: MakeNet, make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...]
) -> None:
    sent, worker = deployed_state(snapshot(make_net(seed=4))), make_worker()
    found = []
    for client in tiny_clients[:2]:
        reply = worker.perform(
            Request(client.id, "outputs", 0, sent, {"splits": SPLITS, "rows": True})
        )
        assert set(reply.tensors) == {"train", "test", "train_rows", "test_rows"}
        for split in SPLITS:
            assert reply.tensors[f"{split}_rows"].equal(getattr(client, split).index)
        found.append(set(reply.tensors["train_rows"].tolist()))
    # Two clients of a domain share its arrays, and have different rows of them.
    assert tiny_clients[0].domain == tiny_clients[1].domain
    assert not found[0] & found[1]


def test_an_empty_split_has_no_rows(
    make_net: MakeNet, make_worker: MakeWorker, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = replace(tiny_clients[0], test=tiny_clients[0].test.subset([]))
    sent = deployed_state(snapshot(make_net()))
    reply = make_worker([client]).perform(
        Request(client.id, "outputs", 0, sent, {"splits": SPLITS, "rows": True})
    )
    assert reply.error == ""
    assert reply.tensors["test"].shape == (0, 3)
    assert reply.tensors["test_rows"].shape == (0,)
    assert len(reply.tensors["train"]) == 27
