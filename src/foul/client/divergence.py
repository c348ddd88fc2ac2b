"""The task `divergence`: how differently two models answer this client's samples."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.federation.messages import Numbers, Tensors, take_group


def divergence(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""For each split: samples, and the sum of :math:`KL(p_{reference} \| p_{model})` of the
    deployed head's softmax outputs."""
    logs = {name: _log_softmax(context, name) for name in ("reference", "model")}
    numbers: Numbers = {}
    for split in context.settings["splits"]:
        one, other = logs["reference"][split], logs["model"][split]
        total = functional.kl_div(other, one, reduction="sum", log_target=True)
        numbers[split] = {"samples": len(one), "kl": float(total)}
    return {}, numbers


def _log_softmax(context: TaskContext, name: str) -> dict[str, Tensor]:
    replace(context, tensors=take_group(context.tensors, name)).load()
    found = {}
    for split in context.settings["splits"]:
        samples = getattr(context.data, split)
        rows = [torch.empty(0, context.net.classes, dtype=torch.float64)]
        for logits, _ in forward(context, samples, "outputs", context.net):
            rows.append(logits.double().log_softmax(1).cpu())
        found[split] = torch.cat(rows)
    return found
