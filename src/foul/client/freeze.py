"""The task `freeze`: run the frozen parts over this client's samples, once."""

import torch

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.client.scope import owner_of
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors
from foul.models import part_of

CACHED = ("E", "K")
"""The parts whose outputs are kept; of all others the tensors themselves are."""


def freeze(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Keep E's output and z_K of the named splits, under the key of the parts that were sent.

    Asked without any tensors, it only says whether all of that is here already, and whether the
    scope of the round before is, from which a step would lead on.
    """
    key = str(context.settings["frozen"])
    if not context.tensors:
        held = context.features.kept(owner_of(context), "scope", context.round - 1) is not None
        return {}, {"ready": _complete(context, key), "held": held}
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
    return {}, {"ready": True}


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
