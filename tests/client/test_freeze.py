from pathlib import Path

import pytest
import torch
from factories import MakeNet
from forget_cases import engine_of, make_case, repainted
from frozen_workers import frozen_worker, settings

from foul.client.features import FeatureStore
from foul.data import ClientData, to_float
from foul.federation.messages import Request
from foul.models import DisentangledNet
from foul.unlearning.methods import make_method


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_scope_on_kept_outputs_is_the_whole_network(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, norm: str, split: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, norm=norm)
    key = make_method("foul", ["precision=float32"]).start(case).numbers["frozen"]
    net = make_net(norm=norm)
    net.load_state_dict(case.learned)
    net.eval()
    for client in tiny_clients:
        samples = getattr(client, split)
        rows = torch.arange(len(samples))
        kept = FeatureStore(tmp_path).load(key, client.id, split, samples)
        assert kept is not None
        extracted, z_k, labels = kept.batch(rows)
        with torch.no_grad():
            whole = net(to_float(samples.batch(rows)[0]))
            torch.testing.assert_close(net.joint_logits(z_k, net.V(extracted)), whole)
        assert labels.equal(samples.targets)


def test_outputs_are_computed_once(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    make_method("foul").start(case)
    make_method("foul").start(case)
    first, second = (engine_of(case).crossed[:8], engine_of(case).crossed[8:])
    assert all(reply.flops > 0 and not reply.tensors for _, reply in first)
    assert all(reply.flops == 0 for _, reply in second)


def test_only_what_does_not_change_is_sent(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """The running statistics of V are fixed: they travel once, with the frozen parts."""
    case = make_case(make_net, tiny_clients, tmp_path, norm="batch")
    make_method("foul").start(case)
    sent = engine_of(case).crossed[0][0].tensors
    parts = {name.split(".")[0] for name in sent}
    assert parts == {"E", "K", "V", "xi"}
    assert {name for name in sent if name.startswith("V.")} <= case.buffers


def test_another_model_gets_outputs_of_its_own(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """Not mistaken for those of the first: the key is a hash of the frozen tensors."""
    one = make_case(make_net, tiny_clients, tmp_path)
    other = make_case(make_net, repainted(tiny_clients, "east"), tmp_path)
    for name, tensor in other.learned.items():
        if name.startswith("K."):
            other.learned[name] = tensor + 0.1
    keys = [make_method("foul").start(case).numbers["frozen"] for case in (one, other)]
    assert keys[0] != keys[1]
    assert all(reply.flops > 0 for _, reply in engine_of(other).crossed)


def test_it_says_whether_the_scope_of_the_round_before_is_here(
    net: DisentangledNet, make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    client = tiny_clients[0]
    worker, _ = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    owner = f"{settings()['session']}-{client.id}"
    FeatureStore(tmp_path).keep(owner, "scope", 2, {"V.w": torch.zeros(1)})
    held = [
        worker.perform(Request(client.id, "freeze", round, {}, settings())).numbers["held"]
        for round in (3, 4)
    ]
    assert held == [True, False]


def test_outputs_of_rounded_parts_are_not_taken_for_those_of_exact_ones(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    keys = {
        make_method("foul", [f"precision={precision}"]).start(case).numbers["frozen"]
        for precision in ("float32", "bfloat16", "int8")
    }
    # The last two send the frozen parts alike.
    assert len(keys) == 2


@pytest.mark.parametrize("missing", ["", "train-e", "validation-k", "rest"])
def test_asked_without_tensors_it_says_whether_all_is_here(
    net: DisentangledNet,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tmp_path: Path,
    missing: str,
) -> None:
    client = tiny_clients[0]
    worker, _ = frozen_worker(net, client, tmp_path, "V", "head", make_net=make_net)
    for file in tmp_path.rglob("*"):
        if missing and missing in file.name:
            file.unlink()
    before = sorted(tmp_path.rglob("*"))
    reply = worker.perform(Request(client.id, "freeze", 3, {}, settings()))
    assert (reply.error, reply.tensors, reply.flops) == ("", {}, 0)
    assert reply.numbers == {"ready": not missing, "held": False}
    other = worker.perform(Request(client.id, "freeze", 3, {}, settings(frozen="another")))
    assert other.numbers == {"ready": False, "held": False}
    assert sorted(tmp_path.rglob("*")) == before
