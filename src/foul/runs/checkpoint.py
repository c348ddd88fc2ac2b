"""Checkpoints: tensors and the state that belongs to them in one safetensors file, no pickle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from foul.errors import UserError
from foul.federation.messages import Tensors
from foul.runs.atomic import replacing


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-like state atomically."""
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = save(content, {"foul": json.dumps(state, sort_keys=True)})
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Tensors and state of a checkpoint.

    Raises:
        UserError: the file is missing, truncated, or not one of ours.
    """
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(metadata["foul"])
    except FileNotFoundError:
        raise UserError(f"Checkpoint {path} does not exist", "Check the run folder.") from None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise UserError(
            f"Checkpoint {path} is damaged or was not written by foul ({error})",
            "Delete it; --resume then continues from what was saved before it.",
        ) from error
