"""The task `evaluate`: how well the network that was sent fits this client's samples."""

from torch import Tensor
from torch.nn import functional

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.federation.messages import Numbers, Tensors


def evaluate(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Counts per split: samples, correct answers of the deployed head and of the classifier on
    z_K alone, and the sum of the deployed head's cross-entropy."""
    context.load()
    return {}, {split: score(context, split) for split in context.settings["splits"]}


def score(context: TaskContext, split: str) -> Numbers:
    """Counts of one split for the live network."""
    net, samples = context.net, getattr(context.data, split)

    def both(images: Tensor) -> tuple[Tensor, Tensor]:
        features = net.E(images)
        z_k = net.K(features)
        causal = net.causal_logits(z_k)
        joint = net.deployed_head == "joint"
        return net.joint_logits(z_k, net.V(features)) if joint else causal, causal

    correct, causal_correct, loss = 0, 0, 0.0
    for (logits, causal_logits), labels in forward(context, samples, "evaluate", both):
        correct += hits(logits, labels)
        causal_correct += hits(causal_logits, labels)
        loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return {
        "samples": len(samples),
        "correct": correct,
        "causal_correct": causal_correct,
        "loss": loss,
    }


def hits(logits: Tensor, labels: Tensor) -> int:
    """How many of the largest logits are at the label."""
    return int((logits.argmax(1) == labels).sum())
