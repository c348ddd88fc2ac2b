"""Plain supervised training of the deployed network."""

from collections.abc import Callable

import torch
from torch import Tensor

from foul.config.schema import LearningConfig
from foul.learning.local import Phase, Terms
from foul.learning.losses import classification_loss
from foul.models import DisentangledNet


class Supervised:
    """Cross-entropy of both heads: the deployed one trains E, K (and V), the other one only
    listens, so that it can be served too without changing what the network learns."""

    def parts(self, config: LearningConfig) -> tuple[str, ...]:
        return ("E", "K", "V", "xi", "head")

    def phases(
        self,
        net: DisentangledNet,
        config: LearningConfig,
        generator: Callable[[str, bool], torch.Generator],
    ) -> list[Phase]:
        def loss(images: Tensor, labels: Tensor) -> Terms:
            features = net.E(images)
            z_k = net.K(features)
            if net.deployed_head == "joint":
                joint = net.joint_logits(z_k, net.V(features))
                causal = net.causal_logits(z_k.detach())
            else:
                joint = net.joint_logits(z_k.detach(), net.V(features.detach()))
                causal = net.causal_logits(z_k)
            return {
                "joint": classification_loss(joint, labels),
                "gtc": classification_loss(causal, labels),
            }

        options = config.supervised
        return [Phase("supervised", self.parts(config), options.epochs, options.rate, loss)]
