"""Learning to unlearn: the generator and MID phases of Algorithm 1."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from foul.config.schema import L2UConfig, LearningConfig
from foul.data.batches import to_unit
from foul.learning.local import Phase, Terms
from foul.learning.losses import (
    classification_loss,
    fooling_loss,
    prototype_loss,
    reconstruction_loss,
    variance_loss,
)
from foul.models import DisentangledNet


class L2U:
    """Two phases in sequence (decision 11):

    * generator: E, K, V, D descend ``a_rec L_rec + a_k L_K + a_v L_V`` on sampled latents;
    * MID: E, K, xi descend ``a_k L_K + a_gtc L_gtc`` on latent means (decision 9), while V and
      the joint head descend the joint head's cross-entropy.

    With ``evidence`` on, the joint head sees z_K without passing gradients to it, and not at all
    for half of the samples. Otherwise K, which already knows every class, answers alone; the
    head never listens to V, and nothing that is done to V can be seen in a prediction.
    """

    def parts(self, config: LearningConfig) -> tuple[str, ...]:
        parts = ("E", "K", "V", "D", "xi", "head")
        return (*parts, "psi") if config.l2u.alpha_adv > 0 else parts

    def phases(
        self,
        net: DisentangledNet,
        config: LearningConfig,
        generator: Callable[[str, bool], torch.Generator],
    ) -> list[Phase]:
        options = config.l2u
        phases = []
        if options.generator_epochs > 0:
            noise = generator("latents", True)
            phases.append(
                Phase(
                    "generator",
                    ("E", "K", "V", "D"),
                    options.generator_epochs,
                    options.generator_rate,
                    lambda images, labels: generator_terms(net, images, labels, options, noise),
                )
            )
        if options.mid_epochs > 0:
            mask = generator("evidence", True)
            trained = tuple(part for part in self.parts(config) if part != "D")
            phases.append(
                Phase(
                    "mid",
                    trained,
                    options.mid_epochs,
                    options.mid_rate,
                    lambda images, labels: mid_terms(net, images, labels, options, mask),
                )
            )
        return phases


def generator_terms(
    net: DisentangledNet, images: Tensor, labels: Tensor, options: L2UConfig, noise: torch.Generator
) -> Terms:
    """Reconstruction from sampled latents, compact z_K, spread z_V."""
    features = net.E(images)
    k, v = net.K.distribution(features), net.V.distribution(features)
    z_k, z_v = k.sample(noise), v.sample(noise)
    mean = torch.cat([k.mean, v.mean], 1)
    logvar = torch.cat([k.logvar, v.logvar], 1)
    terms = {
        "rec": options.alpha_rec
        * reconstruction_loss(
            to_unit(images), net.reconstruct(z_k, z_v), mean, logvar, options.kl_weight
        )
    }
    return terms | _disentangling(z_k, z_v, labels, options)


def mid_terms(
    net: DisentangledNet, images: Tensor, labels: Tensor, options: L2UConfig, mask: torch.Generator
) -> Terms:
    """Meaningful invariant z_K; V and the joint head learn to answer with what K leaves them."""
    features = net.E(images)
    z_k = net.K(features)
    terms = {
        "gtc": options.alpha_gtc * classification_loss(net.causal_logits(z_k), labels),
        "k": options.alpha_k * _prototypes(z_k, labels, options),
    }
    if options.evidence:
        keep = torch.empty(len(z_k), 1, 1, 1, device=z_k.device).bernoulli_(0.5, generator=mask)
        joint = net.joint_logits(z_k.detach() * keep, net.V(features.detach()))
    else:
        joint = net.joint_logits(z_k, net.V(features))
    terms["joint"] = options.alpha_joint * classification_loss(joint, labels)
    if options.alpha_adv > 0:
        terms |= _adversarial(net, z_k, labels, options)
    return terms


def _disentangling(z_k: Tensor, z_v: Tensor, labels: Tensor, options: L2UConfig) -> Terms:
    return {
        "k": options.alpha_k * _prototypes(z_k, labels, options),
        "v": options.alpha_v * variance_loss(z_v, labels, options.variance_form),
    }


def _prototypes(z_k: Tensor, labels: Tensor, options: L2UConfig) -> Tensor:
    return prototype_loss(z_k, labels, options.temperature, options.prototype_form)


def _adversarial(net: DisentangledNet, z_k: Tensor, labels: Tensor, options: L2UConfig) -> Terms:
    """E and K must be classified even by a psi that tries to be wrong (decision 12)."""
    codes = z_k.flatten(1)
    frozen = functional.linear(codes, net.psi.weight.detach(), net.psi.bias.detach())
    return {
        "adv": options.alpha_adv * classification_loss(frozen, labels),
        "psi": options.eta_adv * fooling_loss(net.psi(codes.detach()), labels),
    }
