from pathlib import Path
from typing import Any

import pytest
import torch
from factories import MakeNet, same_bits, snapshot
from torch import nn

from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.data import ClientData, to_float
from foul.data.batches import shuffled_batches
from foul.federation.messages import Reply, Request, Tensors, join_groups
from foul.learning.adapters import Adapters, make_adapters
from foul.learning.losses import classification_loss
from foul.models import DisentangledNet, deployed_state
from foul.seeds import torch_generator

ADAPTED = ["K.layer2.0.conv2.weight", "head.weight", "head.bias"]
FORMS: dict[str, dict[str, Any]] = {
    "sparse": {"form": "sparse", "density": 0.2, "seed": 0},
    "low-rank": {"form": "low-rank", "rank": 2, "alpha": 4.0, "seed": 0},
}


@pytest.fixture
def worker(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> Worker:
    """A worker that was never sent anything; its live network is another one."""
    norm = "batch" if any("running" in name for name in net.state_dict()) else "group"
    return Worker(tiny_clients, make_net(seed=9, norm=norm), features=FeatureStore(tmp_path))


def settings(form: str = "sparse", **values: object) -> dict[str, Any]:
    return {
        "base": "key",
        "adapted": ADAPTED,
        "adapters": FORMS[form],
        "loss": "cross_entropy",
        "epochs": 1.0,
        "rate": 0.05,
        "learning": {"batch_size": 8, "momentum": 0.9, "weight_decay": 0.0},
        "seed": 0,
        **values,
    }


def keep(worker: Worker, net: DisentangledNet) -> Reply:
    return worker.perform(
        Request("east-0", "keep", 1, deployed_state(snapshot(net)), {"base": "key"})
    )


def adapters_of(net: DisentangledNet, form: str) -> Adapters:
    state = snapshot(net)
    return make_adapters({name: state[name] for name in ADAPTED}, **FORMS[form])


def some_values(net: DisentangledNet, form: str) -> Tensors:
    """Not those that adapters start with."""
    generator = torch.Generator().manual_seed(5)
    start = adapters_of(net, form).start()
    return {n: t + 0.02 * torch.randn(t.shape, generator=generator) for n, t in start.items()}


# Keeping the network


def test_the_network_is_kept_and_can_be_asked_for(net: DisentangledNet, worker: Worker) -> None:
    ask = Request("east-0", "keep", 1, {}, {"base": "key"})
    assert worker.perform(ask).numbers == {"ready": False}
    assert keep(worker, net).numbers == {"ready": True}
    assert worker.perform(ask).numbers == {"ready": True}
    other = Request("east-0", "keep", 1, {}, {"base": "another"})
    assert worker.perform(other).numbers == {"ready": False}


@pytest.mark.parametrize("task", ["survey", "adapt"])
def test_without_the_network_it_says_so(net: DisentangledNet, worker: Worker, task: str) -> None:
    reply = worker.perform(Request("east-0", task, 1, some_values(net, "sparse"), settings()))
    assert "is not here" in reply.error
    assert reply.tensors == {}


# How training would change it


def test_a_survey_is_training_of_the_kept_network(net: DisentangledNet, worker: Worker) -> None:
    keep(worker, net)
    told = settings(parts=["E", "K", "V", "head"])
    surveyed = worker.perform(Request("east-0", "survey", 2, {}, told))
    model = join_groups({"model": deployed_state(snapshot(net))})
    trained = worker.perform(Request("east-0", "train", 2, model, told))
    assert surveyed.error == ""
    assert same_bits(surveyed.tensors, trained.tensors)
    assert surveyed.tensors["E.conv1.weight"].any()


# Training adapters


@pytest.mark.parametrize("form", FORMS)
def test_the_change_is_that_of_autograd_through_the_adapters(
    net: DisentangledNet, worker: Worker, tiny_clients: tuple[ClientData, ...], form: str
) -> None:
    client = tiny_clients[0]
    keep(worker, net)
    sent = some_values(net, form)
    before = {name: tensor.clone() for name, tensor in sent.items()}
    reply = worker.perform(Request(client.id, "adapt", 3, sent, settings(form)))
    assert (reply.error, reply.numbers) == ("", {"samples": 27})
    assert same_bits(sent, before)

    adapters = adapters_of(net, form)
    values = {name: nn.Parameter(tensor.clone()) for name, tensor in sent.items()}
    optimiser = torch.optim.SGD(values.values(), 0.05, 0.9)
    names = "+".join(adapters.base)
    order = torch_generator(0, f"shuffle/adapt/{names}", 3, client.id, "cpu")
    for batch in shuffled_batches(27, 8, order):
        images, labels = client.train.batch(batch)
        optimiser.zero_grad()
        # In evaluation mode, as the fixture made it: statistics are fixed.
        logits = torch.func.functional_call(net, adapters.adapted(dict(values)), to_float(images))
        torch.autograd.backward(classification_loss(logits, labels))
        optimiser.step()
    for name, change in reply.tensors.items():
        expected = values[name].detach() - sent[name]
        torch.testing.assert_close(change, expected, rtol=2e-3, atol=2e-6)
        assert bool(expected.any())


@pytest.mark.parametrize("form", FORMS)
def test_nothing_but_the_adapted_layers_changes(
    net: DisentangledNet, worker: Worker, form: str
) -> None:
    keep(worker, net)
    sent = some_values(net, form)
    # Whatever another task left in the live network must not matter.
    model = join_groups({"model": deployed_state(snapshot(net))})
    told = settings(form, parts=["E", "K", "V", "head"])
    first = worker.perform(Request("east-0", "adapt", 1, sent, told))
    worker.perform(Request("east-1", "train", 1, model, told))
    again = worker.perform(Request("east-0", "adapt", 1, sent, told))
    assert same_bits(first.tensors, again.tensors)
    live, base = snapshot(worker._net), deployed_state(snapshot(net))
    adapted = set(adapters_of(net, form).base)
    assert {name for name in base if not live[name].equal(base[name])} == adapted
    values = {name: tensor + again.tensors[name] for name, tensor in sent.items()}
    for name, tensor in adapters_of(net, form).adapted(values).items():
        torch.testing.assert_close(live[name], tensor)


@pytest.mark.parametrize("form", FORMS)
def test_only_the_values_travel(net: DisentangledNet, worker: Worker, form: str) -> None:
    keep(worker, net)
    sent = some_values(net, form)
    request = Request("east-0", "adapt", 1, sent, settings(form))
    reply = worker.perform(request)
    sizes = {name: tensor.numel() for name, tensor in snapshot(net).items()}
    if form == "sparse":
        count = sum(round(0.2 * sizes[name]) for name in ADAPTED)
    else:
        count = 2 * (8 + 8 * 9) + 2 * (3 + sizes["head.weight"] // 3)
    for tensors in (request.tensors, reply.tensors):
        assert sum(tensor.nbytes for tensor in tensors.values()) == 4 * count


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "joy"}, "joy"),
        ({"adapters": {"form": "prompt", "seed": 0}}, "prompt"),
        ({"adapted": ["K.banana.weight"]}, "K.banana.weight"),
        ({"learning": {"momentum": 2}}, "momentum"),
    ],
)
def test_what_cannot_be_done_is_a_reply_that_says_so(
    net: DisentangledNet, worker: Worker, change: dict[str, Any], message: str
) -> None:
    keep(worker, net)
    sent = some_values(net, "sparse")
    reply = worker.perform(Request("east-0", "adapt", 1, sent, settings(**change)))
    assert message in reply.error
    assert reply.tensors == {}


def test_layers_that_need_less_work_cost_less(net: DisentangledNet, worker: Worker) -> None:
    """FLOPs are counted once per kind of step: other layers are another kind."""
    keep(worker, net)
    costs = []
    for names in (["head.weight"], ["E.conv1.weight"], ["head.weight"]):
        base = {name: snapshot(net)[name] for name in names}
        sent = make_adapters(base, **FORMS["sparse"]).start()
        reply = worker.perform(Request("east-0", "adapt", 1, sent, settings(adapted=names)))
        assert reply.error == ""
        costs.append(reply.flops)
    assert costs[0] < costs[1]
    assert costs[0] == costs[2]
