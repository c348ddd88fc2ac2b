"""The task `evaluate`: how well the network that was sent fits this client's samples."""

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.context import TaskContext
from foul.data.batches import ordered_batches, to_float
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors

EVALUATION_BATCH = 256


def evaluate(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Counts per split: samples, correct answers of the deployed head and of the classifier on
    z_K alone, and the sum of the deployed head's cross-entropy."""
    context.load()
    return {}, {split: score(context, split) for split in context.settings["splits"]}


def score(context: TaskContext, split: str) -> Numbers:
    """Counts of one split for the live network."""
    samples: Samples = getattr(context.data, split)
    net = context.net.eval()
    correct, causal, loss = 0, 0, 0.0
    with torch.inference_mode():
        for rows in ordered_batches(len(samples), EVALUATION_BATCH):
            images, labels = samples.batch(rows)
            labels = labels.to(context.device)
            with context.meter.step(("evaluate", *images.shape)):
                features = net.E(to_float(images.to(context.device)))
                z_k = net.K(features)
                causal_logits = net.causal_logits(z_k)
                logits = (
                    net.joint_logits(z_k, net.V(features))
                    if net.deployed_head == "joint"
                    else causal_logits
                )
            correct += hits(logits, labels)
            causal += hits(causal_logits, labels)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return {"samples": len(samples), "correct": correct, "causal_correct": causal, "loss": loss}


def hits(logits: Tensor, labels: Tensor) -> int:
    """How many of the largest logits are at the label."""
    return int((logits.argmax(1) == labels).sum())
