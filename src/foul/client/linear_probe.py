"""The tasks of a linear probe: what a client's latents say about its labels or its domain."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.evaluate import hits
from foul.client.forward import forward
from foul.federation.messages import Numbers, Tensors


def moments(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""With codes z (and a constant 1): :math:`\sum z z^T` and :math:`\sum z y^T` of a split.

    Sums over samples: no single sample can be read from them, and they add up over clients. y is
    the class, or, with the setting `domains`, this client's domain among them.
    """
    context.load()
    codes, labels = _codes(context)
    count = len(context.settings.get("domains", ())) or context.net.classes
    targets = functional.one_hot(labels, count).to(codes)
    return {"gram": codes.T @ codes, "cross": codes.T @ targets}, {"samples": len(labels)}


def probed(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Correct answers of the linear map `probe` on the codes of a split."""
    network = {name: tensor for name, tensor in context.tensors.items() if name != "probe"}
    replace(context, tensors=network).load()
    codes, labels = _codes(context)
    answers = codes @ context.tensors["probe"].to(codes)
    return {}, {"samples": len(labels), "correct": hits(answers, labels)}


def _codes(context: TaskContext) -> tuple[Tensor, Tensor]:
    """Latents of the encoder `part` in float64 with a constant 1, and what is to be told."""
    part, net = context.settings["part"], context.net
    encoder = {"K": net.K, "V": net.V}[part]
    causal = net.xi.in_features
    size = causal if part == "K" else net.head.in_features - causal
    # Beginning with nothing, so that a client without samples answers with zeros.
    codes = [torch.empty(0, size + 1, dtype=torch.float64)]
    targets = [torch.empty(0, dtype=torch.int64)]
    samples = getattr(context.data, context.settings["split"])
    for z, labels in forward(context, samples, f"codes/{part}", lambda x: encoder(net.E(x))):
        flat = z.flatten(1).cpu().double()
        codes.append(torch.cat([flat, torch.ones(len(flat), 1, dtype=flat.dtype)], 1))
        targets.append(labels.cpu())
    told = torch.cat(targets)
    if "domains" in context.settings:
        told = torch.full_like(told, context.settings["domains"].index(context.data.domain))
    return torch.cat(codes), told
