"""Deltas in fewer bytes: half precision, or 8 bits."""

from typing import Literal

import torch

from foul.federation.messages import Tensors

Precision = Literal["float32", "bfloat16", "float16", "int8"]
SCALE = ".scale"


def encode(deltas: Tensors, precision: Precision) -> Tensors:
    """The deltas as they travel; `int8` adds one scale per tensor."""
    if precision == "float32":
        return dict(deltas)
    if precision != "int8":
        return {name: delta.to(getattr(torch, precision)) for name, delta in deltas.items()}
    sent: Tensors = {}
    for name, delta in deltas.items():
        scale = delta.abs().max().clamp_min(1e-30) / 127
        sent[name] = (delta / scale).round().to(torch.int8)
        sent[name + SCALE] = scale.reshape(1)
    return sent


def decode(sent: Tensors) -> Tensors:
    """Deltas in float32."""
    return {
        name: tensor.float() * sent[name + SCALE] if name + SCALE in sent else tensor.float()
        for name, tensor in sent.items()
        if not name.endswith(SCALE)
    }
