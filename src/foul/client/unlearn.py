"""The task `unlearn`: train the scope on top of the frozen parts, answer with its delta."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from foul.client.compress import encode
from foul.client.context import TaskContext
from foul.client.evaluate import EVALUATION_BATCH, hits
from foul.client.features import Features
from foul.config.schema import LearningConfig
from foul.data.batches import ordered_batches
from foul.federation.messages import Numbers, Tensors
from foul.learning.local import LocalTraining, Phase, Terms
from foul.learning.losses import bounded_unlearning_loss, classification_loss

LOSSES = {"cross_entropy": classification_loss, "bounded": bounded_unlearning_loss}


def unlearn(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Descend the named loss of the joint head on the scope.

    The answer also says how well the *received* scope does on the splits, so that the server
    learns what its last step did without another round of traffic.
    """
    settings = context.settings
    _load(context)
    features = {split: _features(context, split) for split in settings["splits"]}
    scores = {split: _score(context, split, features[split]) for split in features}
    loss = LOSSES[settings["loss"]]
    config = LearningConfig.model_validate(settings["learning"])

    def terms(extracted: Tensor, z_k: Tensor, labels: Tensor) -> Terms:
        logits = context.net.joint_logits(z_k, context.net.V(extracted))
        return {settings["loss"]: loss(logits, labels)}

    phase = Phase(
        f"unlearn/{settings['loss']}",
        tuple(settings["scope"]),
        settings["epochs"],
        settings["rate"],
        terms,
        fix_statistics=True,
    )
    start = context.state(context.tensors)
    losses = LocalTraining(context, config).run(phase, features["train"].batch)
    end = context.state(context.tensors)
    deltas = {name: end[name] - start[name] for name in start}
    numbers = {"samples": len(context.data.train), "scores": scores, "losses": losses}
    return encode(deltas, settings["precision"]), numbers


def _load(context: TaskContext) -> None:
    """The scope as it was sent, on top of the tensors that `freeze` kept."""
    rest = context.features.load_rest(context.settings["frozen"])
    if rest is None:
        raise LookupError("the frozen parts are not here")
    replace(context, tensors=rest).load()
    context.load()


def _features(context: TaskContext, split: str) -> Features:
    samples = getattr(context.data, split)
    found = context.features.load(context.settings["frozen"], context.data.id, split, samples)
    if found is None:
        raise LookupError(f"the outputs of the frozen parts for '{split}' are not here")
    return found


def _score(context: TaskContext, split: str, features: Features) -> Numbers:
    """Samples, correct answers and summed cross-entropy of the received scope."""
    net = context.net.eval()
    correct, loss = 0, 0.0
    with torch.inference_mode():
        for rows in ordered_batches(len(features), EVALUATION_BATCH):
            extracted, z_k, labels = (part.to(context.device) for part in features.batch(rows))
            with context.meter.step(("score", *extracted.shape)):
                logits = net.joint_logits(z_k, net.V(extracted))
            correct += hits(logits, labels)
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return {"samples": len(features), "correct": correct, "loss": loss}
