from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from foul.config.schema import DataConfig
from foul.data import Domain, load_dataset
from foul.data.colored_mnist import ENVIRONMENTS

from .test_mnist import write_idx


def everything(domain: Domain) -> tuple[Tensor, Tensor]:
    return domain.train.images, domain.train.labels


def colours(images: Tensor) -> Tensor:
    return (images[..., 1].flatten(1).sum(1) > 0).long()


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_colour_agrees_with_the_label_as_often_as_the_environment_says(noise: float) -> None:
    data = load_dataset(DataConfig(name="colored-mnist", label_noise=noise), seed=0)
    assert data.domain_names == ("+90%", "+80%", "-90%")
    for domain, flips in zip(data.domains, ENVIRONMENTS.values(), strict=True):
        images, labels = everything(domain)
        disagree = (colours(images) != labels).float().mean()
        assert abs(float(disagree) - flips) < 0.04


def test_each_digit_has_one_environment_one_part_and_one_colour() -> None:
    data = load_dataset(DataConfig(name="colored-mnist"), seed=0)
    seen: list[bytes] = []
    for domain in data.domains:
        images, _ = everything(domain)
        assert (images[..., 2] == 0).all()
        assert ((images[..., 0] > 0) & (images[..., 1] > 0)).sum() == 0
        seen += [bytes(row) for row in images.amax(3).numpy()]
        assert set(domain.train.index.tolist()).isdisjoint(domain.test.index.tolist())
        assert len(domain.test) == round(0.2 * len(images))
    assert len(seen) == 5000
    assert len(set(seen)) > 4990


def test_label_noise_flips_that_share() -> None:
    clean, noisy = (
        load_dataset(DataConfig(name="colored-mnist", label_noise=noise), seed=0)
        for noise in (0.0, 0.25)
    )
    flipped = [
        (a.train.labels != b.train.labels).float().mean()
        for a, b in zip(clean.domains, noisy.domains, strict=True)
    ]
    assert all(abs(float(share) - 0.25) < 0.04 for share in flipped)


def test_small_digits_have_label_one(tmp_path: Path) -> None:
    digits = np.arange(30) % 10
    images = np.repeat(digits.astype(np.uint8) + 1, 784).reshape(30, 28, 28)
    write_idx(tmp_path / "train-images-idx3-ubyte", images)
    write_idx(tmp_path / "train-labels-idx1-ubyte", digits.astype(np.uint8))
    data = load_dataset(DataConfig(name="colored-mnist", path=tmp_path, label_noise=0.0), seed=0)
    assert sum(len(d.train) + len(d.test) for d in data.domains) == 30
    for domain in data.domains:
        pictures, labels = everything(domain)
        digit = pictures.amax((1, 2, 3)).long() - 1
        assert labels.equal((digit < 5).long())


def test_the_image_size_is_honoured() -> None:
    data = load_dataset(DataConfig(name="colored-mnist", image_size=14), seed=0)
    assert data.domains[0].train.images.shape[1:] == (14, 14, 3)
    assert data.domains[0].train.images.dtype == torch.uint8
