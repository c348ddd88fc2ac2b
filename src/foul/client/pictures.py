"""The tasks `reconstruct` and `latents`: what the parts see of single samples.

They show a client's data to whoever asks; a report made where the data is may do that, a server
elsewhere must not. So they are asked of engines on this machine only.
"""

import torch
from torch import Tensor

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors


def reconstruct(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Some test images `[n, H, W, 3]`, and what D makes of [z_K, z_V], of z_K alone (z_V = 0) and
    of z_V alone (z_K = 0)."""
    context.load()
    net, samples = context.net, _some(context)

    def three(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = net.E(images)
        z_k, z_v = net.K(features), net.V(features)
        nothing_k, nothing_v = torch.zeros_like(z_k), torch.zeros_like(z_v)
        return (
            net.reconstruct(z_k, z_v),
            net.reconstruct(z_k, nothing_v),
            net.reconstruct(nothing_k, z_v),
        )

    made: dict[str, list[Tensor]] = {"both": [], "k_only": [], "v_only": []}
    for images, _ in forward(context, samples, "reconstruct", three):
        for name, image in zip(made, images, strict=True):
            made[name].append(_pixels(image))
    original = samples.images[samples.index].contiguous()
    empty = original[:0]
    return {
        "original": original,
        **{name: torch.cat([empty, *images]) for name, images in made.items()},
    }, {}


def latents(context: TaskContext) -> tuple[Tensors, Numbers]:
    """z_K, z_V and the class of some test samples."""
    context.load()
    net, samples = context.net, _some(context)

    def both(images: Tensor) -> tuple[Tensor, Tensor]:
        features = net.E(images)
        return net.K(features).flatten(1), net.V(features).flatten(1)

    causal = net.xi.in_features
    z_k = [torch.empty(0, causal)]
    z_v = [torch.empty(0, net.head.in_features - causal)]
    for (causal_codes, noncausal_codes), _ in forward(context, samples, "latents", both):
        z_k.append(causal_codes.cpu())
        z_v.append(noncausal_codes.cpu())
    return {"k": torch.cat(z_k), "v": torch.cat(z_v), "class": samples.targets}, {}


def _some(context: TaskContext) -> Samples:
    """At most `samples` test samples, spread evenly over all of them."""
    test = context.data.test
    count = min(len(test), int(context.settings["samples"]))
    return test.subset(torch.arange(count) * len(test) // max(1, count))


def _pixels(images: Tensor) -> Tensor:
    """uint8 `[n, H, W, 3]` of images in [0, 1]."""
    return (images.cpu() * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
