"""The task `membership`: each sample's loss, for attacks that ask who was trained on."""

import torch
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.evaluate import EVALUATION_BATCH
from foul.data.batches import ordered_batches, to_float
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors


def membership(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Cross-entropy of the deployed head on each sample of the named splits."""
    context.load()
    return {}, {split: _losses(context, split) for split in context.settings["splits"]}


def _losses(context: TaskContext, split: str) -> list[float]:
    samples: Samples = getattr(context.data, split)
    net = context.net.eval()
    losses: list[float] = []
    with torch.inference_mode():
        for rows in ordered_batches(len(samples), EVALUATION_BATCH):
            images, labels = samples.batch(rows)
            with context.meter.step(("membership", *images.shape)):
                logits = net(to_float(images.to(context.device)))
            loss = functional.cross_entropy(logits, labels.to(context.device), reduction="none")
            losses += loss.tolist()
    return losses
