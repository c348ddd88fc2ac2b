"""Loading a user's torchvision-style ResNet weights into E, K and V."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from foul.errors import UserError
from foul.models.disentangled import DisentangledNet

_REMEDY = "Give a ResNet state dict with torchvision's names that matches model.backbone at width 1"


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """A state dict from a .safetensors file or a torch file (weights only, no pickled code)."""
    if not path.is_file():
        raise UserError(f"model.weights {path} is not a file", "Check the path.")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Torch's reader raises whatever wrong bytes lead it to, with advice that runs over lines.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"model.weights {path} cannot be read as tensors ({reason})", f"{_REMEDY}."
        ) from error
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
    ):
        raise UserError(f"model.weights {path} is not a state dict", f"{_REMEDY}.")
    return state


def load_backbone(net: DisentangledNet, path: Path) -> list[str]:
    """Fill E and K (and V where its width allows) with these weights.

    K must fit; V is filled only if its shapes fit, because V is usually narrower than the
    backbone. The file's classifier (`fc`) is ignored. Returns the parts that were filled.
    """
    state = {name: t for name, t in read_state_dict(path).items() if not name.startswith("fc.")}
    filled = ["E", "K"]
    if _misfit(net, "V", state) is None:
        filled.append("V")
    for part in ("E", "K"):
        misfit = _misfit(net, part, state)
        if misfit is not None:
            raise UserError(f"model.weights {path} does not fit: {misfit}", f"{_REMEDY}.")
    with torch.no_grad():
        for part in filled:
            for name, tensor in net.parts()[part].state_dict().items():
                if _from_backbone(name) and name in state:
                    tensor.copy_(state[name])
    return filled


def _from_backbone(name: str) -> bool:
    return not name.startswith(("mean.", "logvar."))


def _misfit(net: DisentangledNet, part: str, state: dict[str, Tensor]) -> str | None:
    """The first tensor of this part that the file lacks or holds in another shape."""
    for name, tensor in net.parts()[part].state_dict().items():
        if not _from_backbone(name) or (name.endswith("num_batches_tracked") and name not in state):
            continue
        if name not in state:
            return f"tensor '{name}' (part {part}) is not in the file"
        if state[name].shape != tensor.shape:
            have, want = tuple(state[name].shape), tuple(tensor.shape)
            return f"tensor '{name}' (part {part}) has shape {have}, the network needs {want}"
    return None
