"""Plain supervised training of the deployed network."""

from collections.abc import Callable

import torch
from torch import Tensor

from foul.config.schema import LearningConfig
from foul.learning.local import Phase, Terms
from foul.learning.losses import classification_loss
from foul.models import DisentangledNet


class Supervised:
    """Cross-entropy of the deployed head, and of xi, so that both heads can be served."""

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
            joint = net.joint_logits(z_k, net.V(features))
            return {
                "joint": classification_loss(joint, labels),
                # xi only listens: K is trained by the joint head.
                "gtc": classification_loss(net.causal_logits(z_k.detach()), labels),
            }

        options = config.supervised
        return [Phase("supervised", self.parts(config), options.epochs, options.rate, loss)]
