from functools import partial
from pathlib import Path

import pytest
from factories import MakeNet
from forget_cases import engine_of, make_case
from foul_rounds import foul, rounds
from torch.nn.functional import cosine_similarity

from foul.client.compress import decode
from foul.config import load_config
from foul.config.schema import ModelConfig
from foul.data import ClientData
from foul.federation.messages import Tensors, take_group
from foul.models import build_network, summarise
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.scope import in_scope, square_convolutions


def parameters(model: ModelConfig) -> Tensors:
    return dict(build_network(model, 7, 64, seed=0).named_parameters())


def test_square_convolutions_of_the_last_stage() -> None:
    small = ModelConfig(backbone="small")
    assert square_convolutions(parameters(small)) == {"V.layer3.0.conv2.weight"}
    resnet = ModelConfig(backbone="resnet18", width=0.25)
    assert square_convolutions(parameters(resnet)) == {
        "V.layer4.0.conv2.weight",
        "V.layer4.1.conv1.weight",
        "V.layer4.1.conv2.weight",
    }
    bottlenecks = ModelConfig(backbone="resnet50", width=0.125)
    assert square_convolutions(parameters(bottlenecks)) == {
        f"V.layer4.{block}.conv2.weight" for block in range(3)
    }


def test_a_v_of_one_stage_has_nothing_in_front_of_them(make_net: MakeNet) -> None:
    assert square_convolutions(dict(make_net().named_parameters())) == ()


@pytest.mark.parametrize(
    ("name", "changes", "most"),
    [("digits", {}, 0.2), ("pacs", {"data.path": "PACS64.zip"}, 0.13)],
)
def test_the_scope_is_a_small_part_of_the_model(
    name: str, changes: dict[str, object], most: float
) -> None:
    model = load_config(name, changes).model
    sizes = summarise(build_network(model, 10, 28, seed=0))
    shares = {
        still: sum(
            t.numel() for t in in_scope(FoulOptions(still=still), dict(parameters(model))).values()
        )
        / sizes.parameters
        for still in ("square", "nothing")
    }
    assert shares["square"] < most < 0.33 < shares["nothing"] <= 0.4


def test_what_stays_still_travels_once_and_never_changes(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    deep = partial(make_net, split=0)
    case = make_case(deep, tiny_clients, tmp_path)
    still = {"V.layer2.0.conv1.weight", "V.layer2.0.conv2.weight"}
    assert square_convolutions(case.learned) == still
    state, _ = rounds(case, foul(rounds=2, still="square"))
    assert all(state.tensors[name].equal(case.learned[name]) for name in still)
    assert not state.tensors["V.layer1.0.conv1.weight"].equal(
        case.learned["V.layer1.0.conv1.weight"]
    )
    for request, reply in engine_of(case).of_task("unlearn"):
        sent = take_group(request.tensors, "scope").keys()
        assert sent == reply.tensors.keys()
        assert not sent & still
    for request, _ in engine_of(case).of_task("freeze"):
        assert still <= decode(request.tensors).keys()


def test_what_stays_still_is_used_as_it_is_and_costs_less(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    """All else moves the same way in a first step, whether it moves or not."""
    deep = partial(make_net, split=0)
    spent, deltas = {}, {}
    for still in ("square", "nothing"):
        case = make_case(deep, tiny_clients, tmp_path / still)
        rounds(case, foul(rounds=1, still=still, epochs=0.01), count=1)
        _, reply = next(iter(engine_of(case).of_task("unlearn")))
        spent[still], deltas[still] = reply.flops, decode(reply.tensors)
    assert spent["square"] < 0.9 * spent["nothing"]
    assert deltas["nothing"].keys() - deltas["square"].keys() == square_convolutions(case.learned)
    for name, delta in deltas["square"].items():
        # The gradients' common norm is limited, so lengths may differ.
        assert (
            float(cosine_similarity(delta.flatten(), deltas["nothing"][name].flatten(), 0)) > 0.999
        )
