import re
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from foul.config.schema import ModelConfig
from foul.errors import UserError
from foul.models import BACKBONES, DisentangledNet, ResNet, build_network, load_backbone
from foul.models.weights import read_state_dict


def backbone_state(name: str = "tiny", width: float = 1.0) -> dict[str, Tensor]:
    """A state dict such as a user's file holds, with statistics that are not the initial ones."""
    torch.manual_seed(0)
    net = ResNet(BACKBONES[name], classes=1000, width=width)
    net(torch.rand(2, 3, 32, 32))
    return dict(net.state_dict())


def network(backbone: str = "tiny", **values: object) -> DisentangledNet:
    config = ModelConfig.model_validate({"backbone": backbone, **values})
    return build_network(config, 3, 32, seed=0)


def store(state: dict[str, Tensor], path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path


def taken(net: DisentangledNet, part: str, state: dict[str, Tensor]) -> list[bool]:
    """For each tensor of the part that a backbone has: is it the file's?"""
    own = net.parts()[part].state_dict()
    return [own[name].equal(state[name]) for name in own if name in state]


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
@pytest.mark.parametrize(("v_width", "filled"), [(1.0, ["E", "K", "V"]), (0.5, ["E", "K"])])
def test_weights_fill_what_they_fit(
    tmp_path: Path, suffix: str, v_width: float, filled: list[str]
) -> None:
    state = backbone_state()
    net = network(v_width=v_width)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert load_backbone(net, store(state, tmp_path / f"weights{suffix}")) == filled
    for part in filled:
        assert all(taken(net, part, state)), part
    changed = {
        name.split(".")[0]
        for name, tensor in net.state_dict().items()
        if not tensor.equal(before[name])
    }
    assert changed == set(filled)


def test_resnet18_weights_fit_at_full_width(tmp_path: Path) -> None:
    state = backbone_state("resnet18")
    net = network("resnet18", split=2)
    assert load_backbone(net, store(state, tmp_path / "r18.safetensors")) == ["E", "K"]
    assert all(taken(net, "E", state))
    assert net.E.get_parameter("conv1.weight").equal(state["conv1.weight"])
    assert net.K.get_buffer("layer4.1.bn2.running_var").equal(state["layer4.1.bn2.running_var"])


def test_the_count_of_batches_may_be_missing(tmp_path: Path) -> None:
    """torchvision's older files do not have it."""
    state = {n: t for n, t in backbone_state().items() if not n.endswith("num_batches_tracked")}
    net = network()
    load_backbone(net, store(state, tmp_path / "old.pth"))
    assert all(taken(net, "E", state))


def test_group_norm_takes_the_convolutions(tmp_path: Path) -> None:
    state = backbone_state()
    net = network(norm="group")
    load_backbone(net, store(state, tmp_path / "weights.pth"))
    assert all(taken(net, "K", state))


@pytest.mark.parametrize(
    ("name", "part"),
    [("conv1.weight", "E"), ("layer1.0.bn1.running_mean", "E"), ("layer2.0.conv2.weight", "K")],
)
def test_the_first_tensor_that_does_not_fit_is_named(tmp_path: Path, name: str, part: str) -> None:
    state = backbone_state()
    wrong = torch.zeros(5, 6)
    shapes = f"(part {part}) has shape (5, 6), the network needs {tuple(state[name].shape)}"
    net = network()
    before = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    with pytest.raises(UserError, match=re.escape(f"'{name}' {shapes}") + ".*torchvision"):
        load_backbone(net, store(state | {name: wrong}, tmp_path / "wrong.pth"))
    del state[name]
    with pytest.raises(UserError, match=rf"'{name}' \(part {part}\) is not in the file"):
        load_backbone(net, store(state, tmp_path / "less.safetensors"))
    assert all(tensor.equal(before[key]) for key, tensor in net.state_dict().items())


def test_another_width_does_not_fit(tmp_path: Path) -> None:
    path = store(backbone_state(), tmp_path / "weights.pth")
    with pytest.raises(UserError, match=r"'conv1.weight'.*needs"):
        load_backbone(network(width=2.0), path)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt"])
@pytest.mark.parametrize(
    "content", [b"", b"not a tensor file\n", b"PK\x03\x04 torn", b"\x80\x02}q"]
)
def test_a_file_that_holds_no_tensors(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"weights{suffix}"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"weights{suffix} cannot be read as tensors") as caught:
        read_state_dict(path)
    assert "\n" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=64))
def test_any_bytes_are_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(content)
    with pytest.raises(UserError):
        read_state_dict(path)


@pytest.mark.parametrize("thing", [[1, 2], {"epoch": 3}, {"state_dict": {}}, {0: torch.ones(1)}])
def test_a_torch_file_with_something_else(tmp_path: Path, thing: object) -> None:
    path = tmp_path / "checkpoint.pth"
    torch.save(thing, path)
    with pytest.raises(UserError, match="is not a state dict"):
        read_state_dict(path)


def test_code_in_a_file_is_never_run(tmp_path: Path) -> None:
    path = tmp_path / "evil.pth"
    torch.save({"conv1.weight": Path("/tmp")}, path)
    with pytest.raises(UserError, match="cannot be read as tensors") as caught:
        read_state_dict(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.pth", "."])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="is not a file"):
        read_state_dict(tmp_path / name)
