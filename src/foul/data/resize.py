"""Images at another size."""

import torch
from torch import Tensor
from torch.nn import functional


def resized(images: Tensor, size: int) -> Tensor:
    """Uint8 images ``[N, H, W, 3]`` at ``size`` by ``size`` pixels, bilinear and antialiased."""
    if images.shape[1:3] == (size, size):
        return images
    planes = images.permute(0, 3, 1, 2).float()
    larger = functional.interpolate(planes, (size, size), mode="bilinear", antialias=True)
    return larger.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()
