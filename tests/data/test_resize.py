import torch

from foul.data.resize import resized


def test_same_size_is_the_same_tensor() -> None:
    images = torch.zeros(2, 8, 8, 3, dtype=torch.uint8)
    assert resized(images, 8) is images


def test_shrinking_averages_and_keeps_the_type() -> None:
    images = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    images[:, :, ::2] = 200
    result = resized(images, 2)
    assert result.shape == (1, 2, 2, 3)
    assert result.dtype == torch.uint8
    assert (result.float() - 100).abs().max() < 20
