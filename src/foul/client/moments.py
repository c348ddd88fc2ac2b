"""The tasks of a linear probe: what a client's latents say about its labels, as sums."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.evaluate import EVALUATION_BATCH, hits
from foul.data.batches import ordered_batches, to_float
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors


def moments(context: TaskContext) -> tuple[Tensors, Numbers]:
    r"""With codes z (and a constant 1): :math:`\sum z z^T` and :math:`\sum z y^T` of a split.

    Sums over samples: no single sample can be read from them, and they add up over clients.
    """
    context.load()
    codes, labels = _codes(context)
    targets = functional.one_hot(labels, context.net.classes).to(codes)
    return {"gram": codes.T @ codes, "cross": codes.T @ targets}, {"samples": len(labels)}


def probed(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Correct answers of the linear map `probe` on the codes of a split."""
    network = {name: tensor for name, tensor in context.tensors.items() if name != "probe"}
    replace(context, tensors=network).load()
    codes, labels = _codes(context)
    answers = codes @ context.tensors["probe"].to(codes)
    return {}, {"samples": len(labels), "correct": hits(answers, labels)}


def _codes(context: TaskContext) -> tuple[Tensor, Tensor]:
    """Latents of the encoder `part` in float64 with a constant 1, and labels."""
    samples: Samples = getattr(context.data, context.settings["split"])
    net = context.net.eval()
    encoder = {"K": net.K, "V": net.V}[context.settings["part"]]
    encoder_size = net.head.in_features - net.xi.in_features
    size = net.xi.in_features if context.settings["part"] == "K" else encoder_size
    # Beginning with nothing, so that a client without samples answers with zeros.
    codes = [torch.empty(0, size + 1, dtype=torch.float64)]
    targets = [torch.empty(0, dtype=torch.int64)]
    with torch.inference_mode():
        for rows in ordered_batches(len(samples), EVALUATION_BATCH):
            images, labels = samples.batch(rows)
            with context.meter.step(("codes", context.settings["part"], *images.shape)):
                z = encoder(net.E(to_float(images.to(context.device)))).flatten(1).cpu().double()
            codes.append(torch.cat([z, torch.ones(len(z), 1, dtype=z.dtype)], 1))
            targets.append(labels)
    return torch.cat(codes), torch.cat(targets)
