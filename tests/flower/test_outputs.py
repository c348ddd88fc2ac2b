import pytest
import torch
from factories import MakeNet, snapshot

from foul.client.worker import Worker
from foul.data import ClientData
from foul.federation.messages import Request, Tensors
from foul.flower.outputs import unfit_outputs

HEAD = {"head.weight": torch.zeros(3, 8)}


def asked(**settings: object) -> Request:
    return Request("a", "outputs", 0, HEAD, {"splits": ["train", "test"], **settings})


def proper() -> Tensors:
    return {
        "train": torch.zeros(5, 3),
        "train_rows": torch.arange(5),
        "test": torch.zeros(0, 3),
        "test_rows": torch.arange(0),
    }


@pytest.mark.parametrize("rows", [False, True])
def test_what_the_task_really_answers_is_fit(
    tiny_clients: tuple[ClientData, ...], make_net: MakeNet, rows: bool
) -> None:
    net = make_net()
    settings = {"splits": ["train", "test"], "rows": rows}
    request = Request(tiny_clients[0].id, "outputs", 0, snapshot(net), settings)
    reply = Worker(tiny_clients, net).perform(request)
    assert not reply.error
    assert unfit_outputs(request, reply.tensors) == ""


def test_every_split_is_there_and_nothing_else() -> None:
    both = proper()
    assert unfit_outputs(asked(rows=True), both) == ""
    assert "'test_rows' is unexpected" in unfit_outputs(asked(), both)
    assert "'x' is unexpected" in unfit_outputs(asked(rows=True), both | {"x": torch.zeros(1)})
    del both["test"]
    assert "'test' is missing" in unfit_outputs(asked(rows=True), both)


@pytest.mark.parametrize(
    "logits",
    [torch.zeros(5, 4), torch.zeros(5), torch.zeros(5, 3, 1), torch.zeros(5, 3).int()],
)
def test_each_sample_has_a_number_for_each_class(logits: torch.Tensor) -> None:
    problem = unfit_outputs(asked(rows=True), proper() | {"train": logits})
    assert "'train' is not a number for each of 3 classes" in problem


@pytest.mark.parametrize(
    "places", [torch.arange(4), torch.zeros(5), torch.zeros(5, 1, dtype=torch.int64)]
)
def test_each_sample_has_a_place(places: torch.Tensor) -> None:
    problem = unfit_outputs(asked(rows=True), proper() | {"train_rows": places})
    assert "'train_rows' is not a place for each sample" in problem


def test_other_tasks_have_other_tensors() -> None:
    assert unfit_outputs(Request("a", "learn", 1, {}, {}), {"V.weight": torch.ones(1)}) == ""
