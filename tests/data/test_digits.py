import pytest
import torch

from foul.config.schema import DataConfig
from foul.data import load_dataset
from foul.data.digits import digits
from foul.data.mnist import embedded_digits

MEANS = {"plain": 33.4536, "inverted": 152.7365, "contours": 54.3777, "textured": 157.3875}


def test_sizes_and_balance() -> None:
    data = digits(28)
    assert data.domain_names == ("plain", "inverted", "contours", "textured")
    for domain in data.domains:
        assert torch.bincount(domain.train.targets).tolist() == [100] * 10
        assert torch.bincount(domain.test.targets).tolist() == [25] * 10
        assert domain.train.images.shape == (1250, 28, 28, 3)
        assert set(domain.train.index.tolist()).isdisjoint(domain.test.index.tolist())


def test_plain_digits_are_the_originals() -> None:
    grey, labels = embedded_digits()
    known = {bytes(image): int(label) for image, label in zip(grey, labels, strict=True)}
    plain = digits(28).domains[0].train
    for image, label in zip(plain.images.numpy(), plain.labels.tolist(), strict=True):
        assert known[bytes(image[..., 0])] == label


def test_the_set_is_the_same_for_every_seed() -> None:
    first, other = (load_dataset(DataConfig(), seed).domains for seed in (0, 1))
    for a, b in zip(first, other, strict=True):
        assert a.train.images.equal(b.train.images)
        assert a.train.index.equal(b.train.index)


def test_pixels_have_not_changed() -> None:
    # Published results depend on these images: a change needs an entry in the change log.
    means = {d.name: float(d.train.images.double().mean()) for d in digits(28).domains}
    assert means == pytest.approx(MEANS, abs=0.01)


def test_strokes_are_light_on_dark_or_dark_on_light() -> None:
    images = {d.name: d.train.images.float() for d in digits(28).domains}
    middle, corner = (slice(None), slice(10, 18), slice(10, 18)), (slice(None), 0, 0)
    brighter = {name: float(x[middle].mean() - x[corner].mean()) for name, x in images.items()}
    assert brighter["plain"] > 0
    assert brighter["contours"] > 0
    assert brighter["inverted"] < 0
    assert brighter["textured"] < 0


def test_another_size_is_resized() -> None:
    data = digits(16)
    assert data.image_size == 16
    assert data.domains[1].train.images.shape == (1250, 16, 16, 3)
    mean = [d.train.images.float().mean() for d in (data.domains[1], digits(28).domains[1])]
    torch.testing.assert_close(mean[0], mean[1], atol=2, rtol=0)
