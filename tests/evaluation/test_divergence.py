from dataclasses import replace
from pathlib import Path

import pytest
import torch
from factories import MakeNet, snapshot
from forget_cases import engine_of, gone, make_case

from foul.data import ClientData, to_float
from foul.evaluation.divergence import divergence
from foul.models import DEPLOYED, DisentangledNet, part_of


def log_probabilities(net: DisentangledNet, client: ClientData, split: str) -> torch.Tensor:
    samples = getattr(client, split)
    images, _ = samples.batch(torch.arange(len(samples)))
    with torch.no_grad():
        logits: torch.Tensor = net(to_float(images))
    return logits.double().log_softmax(1)


@pytest.mark.parametrize("forget", ["domain:east", "client:north-1"])
def test_means_are_over_the_samples_of_either_side(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, forget: str
) -> None:
    # One client has fewer samples, so that a mean of means would be another figure.
    smaller = replace(tiny_clients[0], train=tiny_clients[0].train.subset([0, 1, 2]))
    clients = [smaller, *tiny_clients[1:]]
    case = make_case(make_net, clients, tmp_path, forget)
    reference, model = make_net(seed=7, norm="group").eval(), make_net(norm="group")
    model.load_state_dict(case.learned)
    model.eval()
    rows: dict[str, list[float]] = {"forget": [], "retain": [], "test": []}
    for client in clients:
        side = "forget" if client.id in case.request.forget_ids else "retain"
        for split, kind in (("train", side), ("test", "test")):
            one = log_probabilities(reference, client, split)
            other = log_probabilities(model, client, split)
            rows[kind] += (one.exp() * (one - other)).sum(1).tolist()
    found = divergence(case.federation, case.learned, snapshot(reference), case.request)
    assert set(found) == {"forget", "retain", "test"}
    for kind, values in rows.items():
        assert found[kind] == pytest.approx(sum(values) / len(values), rel=1e-3)
    assert len(set(found.values())) == 3


def test_retrain_does_not_differ_from_itself(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, norm="batch")
    found = divergence(case.federation, case.learned, dict(case.learned), case.request)
    assert found == {"forget": 0.0, "retain": 0.0, "test": 0.0}


def test_deployed_parts_travel_and_no_method_pays(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    divergence(case.federation, case.learned, case.initial, case.request)
    assert list(case.federation.ledger.totals) == ["evaluation"]
    crossed = engine_of(case).of_task("divergence")
    assert [request.client for request, _ in crossed] == [c.id for c in case.federation.clients]
    for request, reply in crossed:
        assert {part_of(name.split(".", 1)[1]) for name in request.tensors} == set(DEPLOYED)
        assert reply.tensors == {}


def test_a_client_that_is_gone_and_splits_without_samples(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [replace(client, test=client.test.subset([])) for client in tiny_clients]
    case = make_case(make_net, clients, tmp_path, meddle=gone("east", "divergence"))
    found = divergence(case.federation, case.learned, case.initial, case.request)
    assert (found["forget"], found["test"]) == (None, None)
    assert found["retain"] is not None
    assert found["retain"] > 0
