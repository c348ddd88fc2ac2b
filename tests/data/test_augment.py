import torch
from torch import Tensor

from foul.data import augment


def images(count: int = 16) -> Tensor:
    return torch.rand(count, 3, 10, 10, generator=torch.Generator().manual_seed(1))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_whole_image_unflipped_is_itself() -> None:
    same = augment(images(), generator(), scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=False)
    torch.testing.assert_close(same, images())


def test_half_of_the_images_are_mirrored() -> None:
    batch = images(400)
    result = augment(batch, generator(), scale=(1.0, 1.0), ratio=(1.0, 1.0))
    mirrored = (result - batch.flip(3)).abs().amax((1, 2, 3)) < 1e-4
    unchanged = (result - batch).abs().amax((1, 2, 3)) < 1e-4
    assert (mirrored | unchanged).all()
    assert 150 < int(mirrored.sum()) < 250


def test_crops_stay_inside_and_differ_between_images() -> None:
    ramp = torch.linspace(0, 1, 10).expand(64, 1, 10, 10).contiguous()
    result = augment(ramp, generator(), scale=(0.25, 0.25), ratio=(1.0, 1.0), flip=False)
    # A quarter of the area is half of the ramp, wherever it lies.
    span = result.amax((1, 2, 3)) - result.amin((1, 2, 3))
    assert ((span > 0.4) & (span < 0.56)).all()
    starts = result.amin((1, 2, 3))
    assert starts.max() - starts.min() > 0.3


def test_same_generator_same_result_and_input_untouched() -> None:
    batch = images()
    first = augment(batch, generator())
    assert first.equal(augment(batch, generator()))
    assert not first.equal(augment(batch, generator(1)))
    assert batch.equal(images())


def test_memory_format_is_kept() -> None:
    batch = images().contiguous(memory_format=torch.channels_last)
    result = augment(batch, generator())
    assert result.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(result, augment(images(), generator()))
