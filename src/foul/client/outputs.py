"""The task `outputs`: each sample's logits, for attacks that ask who was trained on."""

import torch
from torch import Tensor

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.federation.messages import Numbers, Tensors


def outputs(context: TaskContext) -> tuple[Tensors, Numbers]:
    """The deployed head's aligned logits of the named splits; with the setting `rows`, also each
    sample's place in its domain, so that several models' answers to it can be compared."""
    context.load()
    tensors: Tensors = {}
    for split in context.settings["splits"]:
        samples = getattr(context.data, split)
        found = [torch.empty(0, context.net.classes)]
        for logits, labels in forward(context, samples, "outputs", context.net):
            found.append(aligned(logits, labels).cpu())
        tensors[split] = torch.cat(found)
        if context.settings.get("rows"):
            tensors[f"{split}_rows"] = samples.index.clone()
    return tensors, {}


def aligned(logits: Tensor, labels: Tensor) -> Tensor:
    """The true class's logit first, the others after it from the largest to the smallest: all that
    attacks on outputs use, without saying which class it is."""
    true = logits.gather(1, labels[:, None])
    others = logits.scatter(1, labels[:, None], -torch.inf).sort(1, descending=True).values
    return torch.cat([true, others[:, :-1]], 1)
