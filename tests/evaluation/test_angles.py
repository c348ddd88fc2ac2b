from pathlib import Path

import pytest
import torch
from factories import MakeNet
from forget_cases import engine_of, gone, make_case
from torch.nn import functional

from foul.data import ClientData, to_float
from foul.evaluation.angles import SAMPLES, step_angles
from foul.federation.messages import Tensors
from foul.models import DisentangledNet, part_of
from foul.unlearning import Case


def direction(net: DisentangledNet, client: ClientData, part: str) -> Tensors:
    """The step that this client's cross-entropy asks of a part."""
    images, labels = client.train.batch(torch.arange(len(client.train)))
    named = {n: p.requires_grad_() for n, p in net.named_parameters() if part_of(n) == part}
    loss = functional.cross_entropy(net(to_float(images)), labels)
    # The spread of V's codes is not used by the deployed head.
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {n: -gradient for n, gradient in zip(named, found, strict=True) if gradient is not None}


def flat(tensors: Tensors) -> torch.Tensor:
    return torch.cat([tensors[name].flatten().double() for name in sorted(tensors)])


def angles(case: Case, after: Tensors) -> dict[str, float | None]:
    return step_angles(case.federation, case.learned, after, case.request, case.buffers, round=3)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_means_of_either_side_against_what_each_client_would_learn(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, norm: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, norm=norm)
    net = make_net(norm=norm)
    net.load_state_dict(case.learned)
    net.eval()
    ways = {client.id: direction(net, client, "V") for client in tiny_clients}
    # Towards a retain client; running statistics move as well, which is no direction.
    after = {name: tensor.clone() for name, tensor in case.learned.items()}
    for name, step in ways["west-0"].items():
        after[name] += 0.5 * step
    for name in case.buffers:
        after[name] = after[name] + 1
    found = angles(case, after)
    expected: dict[bool, list[float]] = {True: [], False: []}
    for client, way in ways.items():
        cosine = functional.cosine_similarity(flat(way), flat(ways["west-0"]), dim=0)
        expected[client in case.request.forget_ids].append(float(cosine))
    assert found["angle_retain"] == pytest.approx(sum(expected[False]) / 6, abs=1e-3)
    assert found["angle_forget"] == pytest.approx(sum(expected[True]) / 2, abs=1e-3)
    for request, _ in engine_of(case).of_task("angle"):
        sent = {name for name in request.tensors if name.startswith("step.")}
        assert sent == {f"step.{name}" for name in ways["west-0"]}
        assert (request.round, request.settings) == (3, {"samples": SAMPLES})
    assert list(case.federation.ledger.totals) == ["evaluation"]


def test_up_the_forget_clients_slope_is_a_conflict(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, "client:east-0")
    net = make_net(norm="group")
    net.load_state_dict(case.learned)
    client = next(client for client in tiny_clients if client.id == "east-0")
    after = dict(case.learned)
    for name, step in direction(net.eval(), client, "head").items():
        after[name] = after[name] - step
    found = angles(case, after)
    assert found["angle_forget"] == pytest.approx(-1, abs=1e-3)


@pytest.mark.parametrize("changed", ["nothing", "buffers", "decoder"])
def test_what_did_not_move_has_no_angle_and_asks_nobody(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, changed: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, norm="batch")
    after = {
        name: tensor + 1
        if (changed == "buffers" and name in case.buffers)
        or (changed == "decoder" and part_of(name) == "D")
        else tensor.clone()
        for name, tensor in case.learned.items()
    }
    assert angles(case, after) == {"angle_retain": None, "angle_forget": None}
    assert engine_of(case).crossed == []


def test_clients_that_are_gone_are_left_out(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, meddle=gone("east", "angle"))
    after = {
        name: tensor + 0.1 if part_of(name) == "V" else tensor
        for name, tensor in case.learned.items()
    }
    found = angles(case, after)
    assert found["angle_forget"] is None
    cosines = [r.numbers["cosine"] for _, r in engine_of(case).of_task("angle") if not r.error]
    assert len(cosines) == 6
    assert found["angle_retain"] == pytest.approx(sum(cosines) / 6)
