from pathlib import Path

import pytest
import torch
from factories import MakeNet
from forget_cases import engine_of, gone, make_case
from torch.nn import functional

from foul.data import ClientData, to_float
from foul.evaluation.forgetting import assess
from foul.evaluation.membership import loss_auc


@pytest.mark.parametrize("forget", ["domain:east", "client:north-1"])
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_figures_are_those_of_the_network_on_the_clients_samples(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path, forget: str, norm: str
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, forget, norm=norm)
    net = make_net(norm=norm)
    net.load_state_dict(case.learned)
    net.eval()
    losses: dict[tuple[bool, str], list[float]] = {}
    right: dict[tuple[bool, str], list[bool]] = {}
    for client in tiny_clients:
        for split in ("train", "test"):
            samples = getattr(client, split)
            images, labels = samples.batch(torch.arange(len(samples)))
            with torch.no_grad():
                logits = net(to_float(images))
            key = (client.id in case.request.forget_ids, split)
            losses.setdefault(key, []).extend(
                functional.cross_entropy(logits, labels, reduction="none").tolist()
            )
            right.setdefault(key, []).extend((logits.argmax(1) == labels).tolist())

    def accuracy(*keys: tuple[bool, str]) -> float:
        answers = [answer for key in keys for answer in right[key]]
        return sum(answers) / len(answers)

    figures = assess(case.federation, case.learned, case.request)
    assert figures.fa == accuracy((True, "train"))
    assert figures.ra == accuracy((False, "train"))
    assert figures.ta == accuracy((True, "test"), (False, "test"))
    assert figures.forget_test == accuracy((True, "test"))
    assert figures.retain_test == accuracy((False, "test"))
    auc = loss_auc(losses[True, "train"], losses[True, "test"])
    assert figures.mia_auc == pytest.approx(auc, abs=0.01)
    assert figures.mia_low <= figures.mia_auc <= figures.mia_high


def test_evaluation_is_not_charged_to_a_method(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    assess(case.federation, case.learned, case.request)
    assert list(case.federation.ledger.totals) == ["evaluation"]
    asked = {request.client for request, _ in engine_of(case).of_task("membership")}
    assert asked == case.request.forget_ids


def test_a_forget_client_that_is_gone_is_left_out(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path, meddle=gone("east-0", "membership"))
    figures = assess(case.federation, case.learned, case.request)
    assert 0 <= figures.mia_auc <= 1
