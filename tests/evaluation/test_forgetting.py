from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from factories import MakeNet
from forget_cases import engine_of, gone, make_case
from numpy.typing import NDArray

from foul.config.schema import BackdoorConfig
from foul.data import ClientData, to_float
from foul.evaluation.attacks import ATTACKS
from foul.evaluation.forgetting import accuracies, assess, forget_outputs
from foul.evaluation.probe import linear_probe
from foul.federation.federation import QuorumError
from foul.models import DEPLOYED, DisentangledNet, part_of

Vector = NDArray[np.float64]
NOTHING_TESTED = {"samples": 0, "accuracy": None, "causal_accuracy": None, "loss": None}


def logits_of(net: DisentangledNet, client: ClientData, split: str) -> tuple[Vector, Vector]:
    samples = getattr(client, split)
    images, labels = samples.batch(torch.arange(len(samples)))
    with torch.no_grad():
        return net(to_float(images)).double().numpy(), labels.numpy()


def losses_of(net: DisentangledNet, clients: Sequence[ClientData], split: str) -> Vector:
    """Each sample's cross-entropy."""
    found = []
    for client in clients:
        logits, labels = logits_of(net, client, split)
        shifted = logits - logits.max(1, keepdims=True)
        total = np.log(np.exp(shifted).sum(1))
        found.append(total - shifted[np.arange(len(labels)), labels])
    return np.concatenate(found)


def without_test(clients: Sequence[ClientData], domain: str) -> list[ClientData]:
    return [
        replace(client, test=client.test.subset([])) if client.domain == domain else client
        for client in clients
    ]


@pytest.mark.parametrize("forget", ["domain:east", "client:north-1"])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_figures_are_those_of_the_network_on_the_clients_samples(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, forget: str, norm: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, forget, norm=norm)
    net = make_net(norm=norm)
    net.load_state_dict(case.learned)
    net.eval()
    right: dict[tuple[bool, str], list[bool]] = {}
    for client in tiny_clients:
        for split in ("train", "test"):
            logits, labels = logits_of(net, client, split)
            key = (client.id in case.request.forget_ids, split)
            right.setdefault(key, []).extend((logits.argmax(1) == labels).tolist())

    def accuracy(*keys: tuple[bool, str]) -> float:
        answers = [answer for key in keys for answer in right[key]]
        return sum(answers) / len(answers)

    measured = assess(case.federation, case.learned, case.request)
    figures = measured.summary()
    assert figures["fa"] == accuracy((True, "train"))
    assert figures["ra"] == accuracy((False, "train"))
    assert figures["ta"] == accuracy((True, "test"), (False, "test"))
    assert figures["forget_test"] == accuracy((True, "test"))
    assert figures["retain_test"] == accuracy((False, "test"))
    assert accuracies(case.federation, case.learned, case.request) == measured.accuracies
    forgotten = [client for client in tiny_clients if client.id in case.request.forget_ids]
    members, others = (losses_of(net, forgotten, split) for split in ("train", "test"))
    # A member's loss is the smaller one.
    pairs = (members[:, None] < others) + 0.5 * (members[:, None] == others)
    assert figures["mia_auc"] == pytest.approx(pairs.mean(), abs=0.01)
    assert figures["mia_low"] <= figures["mia_auc"] <= figures["mia_high"]
    assert 0 <= figures["mia_accuracy"] <= 1
    assert 0 <= figures["mia_tpr_1"] <= 1
    for part, figure in (("K", "k_probe"), ("V", "v_probe")):
        probed = linear_probe(case.federation, case.learned, case.request.forget, part)
        assert figures[figure] == probed
    assert figures["backdoor"] is None


def test_outputs_are_the_forget_clients_and_their_loss_is_the_attacks(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    net = make_net(norm="group")
    net.load_state_dict(case.learned)
    net.eval()
    forgotten = [client for client in tiny_clients if client.domain == "east"]
    for split, found in zip(
        ("train", "test"),
        forget_outputs(case.federation, case.learned, case.request),
        strict=True,
    ):
        assert found.dtype == np.float64
        loss = np.log(np.exp(found).sum(1)) - found[:, 0]
        np.testing.assert_allclose(loss, losses_of(net, forgotten, split), atol=1e-4)


def test_the_detail_has_every_client_domain_attack_and_probe(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    measured = assess(case.federation, case.learned, case.request)
    detail, figures = measured.detail(), measured.summary()
    clients, domains = detail["accuracy"]["clients"], detail["accuracy"]["domains"]
    assert set(clients) == {client.id for client in tiny_clients}
    for domain, splits in domains.items():
        for split, samples in (("train", 27), ("test", 12)):
            own = [clients[f"{domain}-{number}"][split] for number in range(2)]
            assert splits[split]["samples"] == 2 * samples
            mean = sum(client["accuracy"] for client in own) / 2
            assert splits[split]["accuracy"] == pytest.approx(mean)
    assert domains["east"]["train"]["accuracy"] == pytest.approx(figures["fa"])
    assert domains["east"]["test"]["accuracy"] == pytest.approx(figures["forget_test"])
    assert set(detail["attacks"]) == set(ATTACKS)
    loss = detail["attacks"]["loss"]
    assert (loss["auc"], loss["accuracy"]) == (figures["mia_auc"], figures["mia_accuracy"])
    assert (loss["members"], loss["others"]) == (54, 24)
    assert detail["probes"]["K"]["labels"] == figures["k_probe"]
    assert detail["probes"]["V"]["labels"] == figures["v_probe"]
    for part in ("K", "V"):
        told = linear_probe(
            case.federation, case.learned, case.federation.clients, part, domains=True
        )
        assert detail["probes"][part]["domain"] == told
    assert detail["backdoor"] is None


def test_a_backdoor_is_told_where_there_is_one(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    trigger = BackdoorConfig(clients=("east",), target=1)
    measured = assess(case.federation, case.learned, case.request, trigger)
    replies = [reply.numbers for _, reply in engine_of(case).of_task("triggered")]
    success = sum(r["fooled"] for r in replies) / sum(r["samples"] for r in replies)
    assert measured.summary()["backdoor"] == success
    assert measured.detail()["backdoor"] == {"success": success}


def test_evaluation_is_not_charged_to_a_method(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    assess(case.federation, case.learned, case.request)
    assert list(case.federation.ledger.totals) == ["evaluation"]
    asked = {request.client for request, _ in engine_of(case).of_task("outputs")}
    assert asked == case.request.forget_ids


def test_validation_samples_never_judge(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """They may have steered a method."""
    case = make_case(make_net, tiny_clients, tmp_path / "a")
    expected = assess(case.federation, case.learned, case.request)
    for request, _ in engine_of(case).crossed:
        assert "validation" not in str(request.settings)
        assert {part_of(name) for name in request.tensors} <= {*DEPLOYED, "probe"}
    without = [replace(c, validation=c.validation.subset([])) for c in tiny_clients]
    other = make_case(make_net, without, tmp_path / "b")
    assert assess(other.federation, other.learned, other.request) == expected


def test_a_forget_client_that_is_gone_is_left_out(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, meddle=gone("east-0", "outputs"))
    measured = assess(case.federation, case.learned, case.request)
    loss = measured.attacks["loss"]
    assert (loss.members, loss.others) == (27, 12)
    away = make_case(make_net, tiny_clients, tmp_path, meddle=gone("east", "outputs"))
    with pytest.raises(QuorumError, match="0 of 2 clients answered"):
        assess(away.federation, away.learned, away.request)


@pytest.mark.parametrize(("domain", "role"), [("east", "forget"), ("west", "retain")])
def test_accuracy_that_nobody_told_is_not_zero(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, domain: str, role: str
) -> None:
    clients = [client for client in tiny_clients if client.domain in ("east", "west")]
    case = make_case(make_net, clients, tmp_path, meddle=gone(domain, "evaluate"))
    with pytest.raises(QuorumError, match=f"No {role} client told.*{domain}-0: "):
        accuracies(case.federation, case.learned, case.request)


def test_a_domain_that_did_not_answer_has_no_accuracy(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, meddle=gone("west", "evaluate"))
    measured = assess(case.federation, case.learned, case.request)
    accuracy = measured.detail()["accuracy"]
    assert accuracy["domains"]["west"] == {"train": NOTHING_TESTED, "test": NOTHING_TESTED}
    assert set(accuracy["clients"]) == {c.id for c in tiny_clients if c.domain != "west"}
    assert measured.scores.missing.keys() == {"west-0", "west-1"}


def test_without_test_samples_of_the_forgotten_nothing_is_attacked(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, without_test(tiny_clients, "east"), tmp_path)
    measured = assess(case.federation, case.learned, case.request)
    figures, detail = measured.summary(), measured.detail()
    assert measured.attacks == detail["attacks"] == {}
    absent = ("mia_auc", "mia_low", "mia_high", "mia_accuracy", "mia_tpr_1", "k_probe", "v_probe")
    assert [figures[key] for key in (*absent, "forget_test")] == [None] * 8
    # What was not measured is not 0; the others were.
    assert detail["accuracy"]["domains"]["east"]["test"] == NOTHING_TESTED
    assert figures["ta"] == figures["retain_test"]
    assert figures["ta"] is not None
    assert figures["fa"] is not None
