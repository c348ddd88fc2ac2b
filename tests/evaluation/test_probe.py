from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from factories import MakeNet
from forget_cases import engine_of, gone, make_case
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from foul.data import ClientData, to_float
from foul.evaluation.probe import RIDGE, linear_probe, ridge
from foul.federation.federation import QuorumError
from foul.models import DEPLOYED, DisentangledNet, part_of

Matrix = NDArray[np.float64]


def pooled(
    net: DisentangledNet, clients: list[ClientData], split: str, part: str
) -> tuple[Matrix, Matrix]:
    """Codes with a constant, and labels, of all these clients together."""
    codes, targets = [], []
    for client in clients:
        samples = getattr(client, split)
        images, labels = samples.batch(torch.arange(len(samples)))
        with torch.no_grad():
            features = net.E(to_float(images))
            z = (net.K if part == "K" else net.V)(features).flatten(1).double().numpy()
        codes.append(np.hstack([z, np.ones((len(z), 1))]))
        targets.append(labels.numpy())
    return np.vstack(codes), np.concatenate(targets)


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 30))
def test_ridge_is_scikit_learns(seed: int, width: int, samples: int) -> None:
    rng = np.random.default_rng(seed)
    codes, targets = rng.normal(size=(samples, width)), rng.normal(size=(samples, 2))
    gram = codes.T @ codes
    found = ridge(torch.from_numpy(gram), torch.from_numpy(codes.T @ targets))
    model = Ridge(alpha=RIDGE * np.trace(gram) / width, fit_intercept=False, solver="svd")
    np.testing.assert_allclose(found.numpy().T, model.fit(codes, targets).coef_, atol=1e-6)
    # It is sent to clients, so its memory must be plain.
    assert found.is_contiguous()


@pytest.mark.parametrize("part", ["K", "V"])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_accuracy_is_that_of_a_probe_on_pooled_latents(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, part: str, norm: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, norm=norm)
    net = make_net(norm=norm)
    net.load_state_dict(case.learned)
    net.eval()
    forget = [client for client in tiny_clients if client.domain == "east"]
    codes, labels = pooled(net, forget, "train", part)
    strength = RIDGE * (codes**2).sum() / codes.shape[1]
    model = Ridge(alpha=strength, fit_intercept=False, solver="svd").fit(codes, np.eye(3)[labels])
    test_codes, test_labels = pooled(net, forget, "test", part)
    expected = np.mean(model.predict(test_codes).argmax(1) == test_labels)
    # A single sample at the border between two classes may fall to either side.
    found = linear_probe(case.federation, case.learned, case.request.forget, part)
    assert found == pytest.approx(expected, abs=1.01 / len(test_labels))
    assert found is not None
    assert found > 1 / 3


def test_only_sums_leave_a_client_and_no_method_pays(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    before = {name: tensor.clone() for name, tensor in case.learned.items()}
    linear_probe(case.federation, case.learned, case.request.forget)
    assert list(case.federation.ledger.totals) == ["evaluation"]
    crossed = engine_of(case).of_task("moments")
    assert [request.client for request, _ in crossed] == ["east-0", "east-1"]
    for request, reply in crossed:
        assert {part_of(name) for name in request.tensors} == set(DEPLOYED)
        assert reply.tensors.keys() == {"gram", "cross"}
        width = len(reply.tensors["gram"])
        assert reply.tensors["gram"].shape == (width, width)
        assert reply.tensors["cross"].shape == (width, 3)
    for request, reply in engine_of(case).of_task("probed"):
        # Fitted on training samples, asked about test samples.
        assert (request.settings["split"], reply.numbers["samples"]) == ("test", 12)
        assert reply.tensors == {}
    assert case.learned.keys() == before.keys()
    assert all(torch.equal(case.learned[name], before[name]) for name in before)


def test_a_client_that_is_gone_is_left_out(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    half = make_case(make_net, tiny_clients, tmp_path / "a", meddle=gone("east-0", "moments"))
    net = make_net(norm="group")
    net.load_state_dict(half.learned)
    net.eval()
    stays = [client for client in tiny_clients if client.id == "east-1"]
    codes, labels = pooled(net, stays, "train", "K")
    alpha = RIDGE * (codes**2).sum() / codes.shape[1]
    expected = Ridge(alpha=alpha, fit_intercept=False, solver="svd").fit(codes, np.eye(3)[labels])
    linear_probe(half.federation, half.learned, half.request.forget)
    sent = engine_of(half).of_task("probed")[0][0].tensors["probe"]
    np.testing.assert_allclose(sent.numpy().T, expected.coef_, atol=1e-3)
    away = make_case(make_net, tiny_clients, tmp_path / "b", meddle=gone("east", "moments"))
    with pytest.raises(QuorumError, match="0 of 2 clients answered"):
        linear_probe(away.federation, away.learned, away.request.forget)


def test_without_test_samples_there_is_no_accuracy(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [replace(client, test=client.test.subset([])) for client in tiny_clients]
    case = make_case(make_net, clients, tmp_path)
    assert linear_probe(case.federation, case.learned, case.request.forget) is None


def test_one_client_without_test_samples_is_no_hindrance(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [
        replace(client, test=client.test.subset([])) if client.id == "east-0" else client
        for client in tiny_clients
    ]
    case = make_case(make_net, clients, tmp_path)
    accuracy = linear_probe(case.federation, case.learned, case.request.forget)
    [numbers] = [
        reply.numbers for _, reply in engine_of(case).of_task("probed") if reply.client == "east-1"
    ]
    assert accuracy == numbers["correct"] / 12


# Telling domains


@pytest.mark.parametrize("part", ["K", "V"])
def test_domains_are_told_from_pooled_latents(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, part: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    net = make_net(norm="group")
    net.load_state_dict(case.learned)
    net.eval()
    domains = sorted({client.domain for client in tiny_clients})

    def of(split: str) -> tuple[Matrix, Matrix]:
        codes, _ = pooled(net, list(tiny_clients), split, part)
        places = [domains.index(client.domain) for client in tiny_clients]
        return codes, np.repeat(places, len(codes) // len(places))

    codes, places = of("train")
    strength = RIDGE * (codes**2).sum() / codes.shape[1]
    model = Ridge(alpha=strength, fit_intercept=False, solver="svd").fit(codes, np.eye(4)[places])
    test_codes, test_places = of("test")
    expected = np.mean(model.predict(test_codes).argmax(1) == test_places)
    found = linear_probe(case.federation, case.learned, case.federation.clients, part, domains=True)
    assert found == pytest.approx(expected, abs=2.01 / len(test_places))
    assert found is not None
    assert found > 0.4
    # Clients are told the names of the domains, and the classes are another question.
    for request, reply in engine_of(case).of_task("moments"):
        assert request.settings["domains"] == domains
        assert reply.tensors["cross"].shape[1] == 4
    assert found != linear_probe(case.federation, case.learned, case.federation.clients, part)


def test_a_single_domain_is_no_riddle(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    clients = case.request.forget
    assert linear_probe(case.federation, case.learned, clients, "K", domains=True) == 1.0


def test_without_training_samples_there_is_no_probe(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [replace(client, train=client.train.subset([])) for client in tiny_clients]
    case = make_case(make_net, clients, tmp_path)
    assert linear_probe(case.federation, case.learned, case.request.forget) is None
    assert engine_of(case).of_task("probed") == []
