"""Random crops and flips of a whole batch at once."""

import math

import torch
from torch import Tensor
from torch.nn import functional


def augment(
    images: Tensor,
    generator: torch.Generator,
    scale: tuple[float, float] = (0.8, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    flip: bool = True,
) -> Tensor:
    """Random resized crop and horizontal flip, different for each image.

    Both are one affine map per image, so that the batch is resampled (bilinearly) once.

    Args:
        images: floats ``[B, C, H, W]``.
        generator: where randomness comes from.
        scale: range of the crop's share of the area.
        ratio: range of the crop's width to height, drawn evenly on a log scale.
        flip: mirror half of the images.

    Returns:
        A new tensor of the same shape and memory format.
    """
    count = len(images)
    where = generator.device
    area, aspect, left, top, coin = torch.rand(5, count, generator=generator, device=where)
    area = scale[0] + (scale[1] - scale[0]) * area
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = torch.exp(low + (high - low) * aspect)
    width = (area * aspect).sqrt().clamp_max(1)
    height = (area / aspect).sqrt().clamp_max(1)
    mirror = 1 - 2 * (coin < 0.5).float() if flip else torch.ones(count, device=where)
    maps = torch.zeros(count, 2, 3, device=where)
    maps[:, 0, 0] = width * mirror
    maps[:, 1, 1] = height
    maps[:, 0, 2] = (2 * left - 1) * (1 - width)
    maps[:, 1, 2] = (2 * top - 1) * (1 - height)
    grid = functional.affine_grid(
        maps.to(images.device, images.dtype), list(images.shape), align_corners=False
    )
    result = functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    # grid_sample always answers channels first.
    if images.is_contiguous(memory_format=torch.channels_last):
        return result.contiguous(memory_format=torch.channels_last)
    return result
