import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from foul.errors import MachineError, UserError
from foul.runs.checkpoint import load_tensors, save_tensors

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8)


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 4)])
def test_tensors_come_back_bit_for_bit(
    tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    tensor = (torch.rand(shape) * 200).to(dtype)
    save_tensors(tmp_path / "a.safetensors", {"t": tensor}, {})
    (name, back), *_ = load_tensors(tmp_path / "a.safetensors")[0].items()
    assert (name, back.dtype, back.shape) == ("t", dtype, tensor.shape)
    assert torch.equal(back, tensor)


def test_odd_numbers_and_strides_survive(tmp_path: Path) -> None:
    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45])
    strided = torch.arange(24.0).view(2, 3, 2, 2).to(memory_format=torch.channels_last)
    large = torch.tensor(2**62 + 1)
    save_tensors(tmp_path / "a", {"odd": odd, "strided": strided, "large": large}, {})
    back, _ = load_tensors(tmp_path / "a")
    assert bits(back["odd"]) == bits(odd)
    assert back["strided"].equal(strided)
    assert int(back["large"]) == 2**62 + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=25)
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_the_state_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "state.safetensors"
    save_tensors(path, {"t": torch.zeros(1)}, state)
    assert load_tensors(path)[1] == state


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_tensors(tmp_path / name, {"t": torch.ones(3)}, {"b": 1, "a": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@settings(deadline=None, max_examples=25)
@given(share=st.floats(0, 0.999))
def test_a_truncated_checkpoint_is_named_with_a_remedy(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-00007.safetensors"
    save_tensors(path, {"t": torch.rand(100)}, {"round": 7})
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(UserError, match=r"round-00007\.safetensors is damaged.*Delete it.*resume"):
        load_tensors(path)


def test_other_files_are_not_taken_for_checkpoints(tmp_path: Path) -> None:
    save_file({"t": torch.zeros(1)}, tmp_path / "theirs.safetensors")
    (tmp_path / "pickle.safetensors").write_bytes(pickle.dumps({"t": 1}))
    for name in ("theirs", "pickle"):
        with pytest.raises(UserError, match=rf"{name}\.safetensors is damaged or was not written"):
            load_tensors(tmp_path / f"{name}.safetensors")


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.safetensors does not exist"):
        load_tensors(tmp_path / "gone.safetensors")


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="could not be written"):
        save_tensors(tmp_path / "no" / "a.safetensors", {"t": torch.zeros(1)}, {})
    assert list(tmp_path.iterdir()) == []
