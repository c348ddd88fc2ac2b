"""The task `freeze`: run the frozen parts over this client's samples, once."""

import torch
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors
from foul.models import part_of

CACHED = ("E", "K")
"""The parts whose outputs are kept; of all others the tensors themselves are."""


def freeze(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Keep E's output and z_K of the named splits, under the key of the parts that were sent.

    The answer also says how well the training samples are fitted: the mean cross-entropy of the
    auxiliary classifier xi, which needs nothing but z_K. Asked without any tensors, it only says
    whether all outputs are here already.
    """
    key = str(context.settings["frozen"])
    if not context.tensors:
        return {}, {"ready": _complete(context, key)}
    context.load()
    for split in context.settings["splits"]:
        samples: Samples = getattr(context.data, split)
        if len(samples) and context.features.load(key, context.data.id, split, samples) is None:
            extracted, codes = _outputs(context, samples)
            context.features.save(key, context.data.id, split, extracted, codes)
    # The live network is shared and does not outlive the process: what the scope is trained with
    # must be kept, or a later round would find other tensors there.
    rest = {name: t for name, t in context.tensors.items() if part_of(name) not in CACHED}
    context.features.save_rest(key, rest)
    return {}, {"ready": True, "samples": len(context.data.train), "loss": _loss(context, key)}


def _loss(context: TaskContext, key: str) -> float:
    """Mean cross-entropy of xi on the training samples; 0 without any."""
    samples = context.data.train
    kept = context.features.load(key, context.data.id, "train", samples)
    if kept is None or not len(samples):
        return 0.0
    with torch.inference_mode(), context.meter.step(("xi", *kept.z_k.shape)):
        logits = context.net.causal_logits(kept.z_k.to(context.device))
    return float(functional.cross_entropy(logits, kept.labels.to(context.device)))


def _complete(context: TaskContext, key: str) -> bool:
    client, store = context.data, context.features
    kept = [
        store.load(key, client.id, split, getattr(client, split))
        for split in context.settings["splits"]
        if len(getattr(client, split))
    ]
    return store.load_rest(key) is not None and None not in kept


def _outputs(context: TaskContext, samples: Samples) -> tuple[torch.Tensor, torch.Tensor]:
    net = context.net

    def frozen(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = net.E(images)
        return features, net.K(features)

    extracted, codes = [], []
    for (features, z_k), _ in forward(context, samples, "freeze", frozen):
        extracted.append(features.permute(0, 2, 3, 1).cpu())
        codes.append(z_k.flatten(1).cpu())
    return torch.cat(extracted), torch.cat(codes)
