"""The disentangled network: E, K, V, D and the classifiers, named as in the paper."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from foul.config.schema import ModelConfig
from foul.models.backbones import BACKBONES, NORMS, Norm, conv3x3, initialise, scaled
from foul.seeds import torch_generator

PARTS = ("E", "K", "V", "D", "xi", "head", "psi")
"""Extractor, causal and non-causal encoder, decoder, auxiliary classifier on z_K, joint head,
adversarial head. A tensor's part is the first word of its name."""

DEPLOYED = ("E", "K", "V", "xi", "head")
"""What is served: D and psi exist for the learning stage only (decision 24)."""


class Gaussian(NamedTuple):
    """A diagonal Gaussian over a latent map `[B, C, S, S]`."""

    mean: Tensor
    logvar: Tensor

    def sample(self, generator: torch.Generator) -> Tensor:
        """Reparameterised: mean + exp(logvar / 2) * noise."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + torch.exp(0.5 * self.logvar) * noise


class Encoder(nn.Module):
    """Backbone stages and a bottleneck of `channels` latent maps (K, V)."""

    def __init__(
        self, layers: Mapping[str, nn.Module], outputs: int, channels: int, size: int
    ) -> None:
        super().__init__()
        self.size = size
        self.layers = tuple(layers)
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.mean = nn.Conv2d(outputs, channels, 1)
        self.logvar = nn.Conv2d(outputs, channels, 1)

    def features(self, x: Tensor) -> Tensor:
        for name in self.layers:
            x = self.get_submodule(name)(x)
        if x.shape[-1] != self.size:
            x = functional.adaptive_avg_pool2d(x, self.size)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """The latent mean: what every phase but the generator uses."""
        return self.mean(self.features(x))  # type: ignore[no-any-return]

    def distribution(self, x: Tensor) -> Gaussian:
        features = self.features(x)
        # A bounded log variance: exp() of an untrained output must not overflow.
        return Gaussian(self.mean(features), self.logvar(features).clamp(-8.0, 4.0))


class Decoder(nn.Module):
    """Latent maps back to an image in [0, 1]: nearest upsampling and 3x3 convolutions."""

    def __init__(self, inputs: int, size: int, image_size: int, channels: int, norm: Norm) -> None:
        super().__init__()
        self.image_size = image_size
        layers: list[nn.Module] = []
        while size < image_size:
            layers += [conv3x3(inputs, channels), norm(channels), nn.ReLU(inplace=True)]
            layers.append(nn.Upsample(scale_factor=2))
            inputs, size, channels = channels, size * 2, max(8, channels // 2)
        self.layers = nn.Sequential(*layers)
        self.output = nn.Conv2d(inputs, 3, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        x = self.layers(z)
        margin = x.shape[-1] - self.image_size
        start = margin // 2
        x = x[..., start : start + self.image_size, start : start + self.image_size]
        return torch.sigmoid(self.output(x))


class DisentangledNet(nn.Module):
    """E -> (K, V) -> joint head; D and the auxiliary heads serve learning.

    E is the stem and the first `config.split` stages of the backbone; K and V are two copies of
    the remaining stages, of widths `k_width` and `v_width` relative to the backbone's. Tensor
    names after the part are torchvision's, so ImageNet weights fit E, and K and V at width 1.
    """

    def __init__(self, config: ModelConfig, classes: int, image_size: int) -> None:
        super().__init__()
        backbone = BACKBONES[config.backbone]
        stages = len(backbone.stages)
        self.deployed_head = config.head
        self.classes, self.image_size = classes, image_size

        norm = NORMS[config.norm]
        stem = backbone.stem_layers(config.width, norm)
        shallow, channels = backbone.stage_layers(
            0, config.split, scaled(backbone.stem_channels, config.width), config.width, norm
        )
        stem.update(shallow)
        self.E = nn.Sequential(stem)
        size = _map_size(self.E, backbone.stages[config.split :], image_size, config.latent_size)

        def encoder(width: float, latent: int) -> Encoder:
            layers, outputs = backbone.stage_layers(
                config.split, stages, channels, config.width * width, norm
            )
            return Encoder(layers, outputs, latent, size)

        self.K = encoder(config.k_width, config.k_channels)
        self.V = encoder(config.v_width, config.v_channels)
        self.D = Decoder(
            config.k_channels + config.v_channels, size, image_size, config.decoder_channels, norm
        )
        causal, noncausal = config.k_channels * size**2, config.v_channels * size**2
        self.xi = nn.Linear(causal, classes)
        self.head = nn.Linear(causal + noncausal, classes)
        if config.adversarial:
            self.psi = nn.Linear(causal, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the deployed head for normalised images."""
        features = self.E(x)
        z_k = self.K(features)
        if self.deployed_head == "causal":
            return self.causal_logits(z_k)
        return self.joint_logits(z_k, self.V(features))

    def causal_logits(self, z_k: Tensor) -> Tensor:
        return self.xi(z_k.flatten(1))  # type: ignore[no-any-return]

    def joint_logits(self, z_k: Tensor, z_v: Tensor) -> Tensor:
        return self.head(torch.cat([z_k.flatten(1), z_v.flatten(1)], 1))  # type: ignore[no-any-return]

    def reconstruct(self, z_k: Tensor, z_v: Tensor) -> Tensor:
        """The image that the latents describe, in [0, 1]."""
        return self.D(torch.cat([z_k, z_v], 1))  # type: ignore[no-any-return]

    def parts(self) -> dict[str, nn.Module]:
        """The parts that this network has, in the paper's order."""
        return {name: module for name, module in self.named_children() if name in PARTS}

    def part_state(self, parts: Iterable[str]) -> dict[str, Tensor]:
        """Tensors of these parts (parameters and buffers), by full name; not copied."""
        wanted = set(parts)
        return {
            name: tensor for name, tensor in self.state_dict().items() if part_of(name) in wanted
        }


def part_of(name: str) -> str:
    """The part a tensor belongs to."""
    return name.split(".", 1)[0]


def build_network(config: ModelConfig, classes: int, image_size: int, seed: int) -> DisentangledNet:
    """A freshly initialised network; the same seed gives the same bits."""
    net = DisentangledNet(config, classes, image_size)
    for name, module in net.parts().items():
        # One stream per part: a wider V does not change how K starts.
        initialise(module, torch_generator(seed, f"init/{name}"))
    return net


def _map_size(extractor: nn.Module, deep: Iterable[object], image_size: int, largest: int) -> int:
    """Side of the latent maps: what the stages leave of the image, at most `largest`."""
    with torch.no_grad():
        extractor.eval()
        size = int(extractor(torch.zeros(1, 3, image_size, image_size)).shape[-1])
        extractor.train()
    for stage in deep:
        size = -(-size // getattr(stage, "stride", 1))
    return min(size, largest)
