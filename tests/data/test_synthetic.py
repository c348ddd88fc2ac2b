import torch
from torch import nn
from torch.nn import functional

from foul.config.schema import DataConfig
from foul.data import load_dataset, to_float
from foul.data.synthetic import TEST, TRAIN, synthetic


def test_shape_and_balance() -> None:
    data = synthetic(image_size=12, seed=0)
    assert data.domain_names == ("north", "east", "south", "west")
    for domain in data.domains:
        assert domain.train.images.shape == (TRAIN, 12, 12, 3)
        assert torch.bincount(domain.train.targets).tolist() == [TRAIN // 3] * 3
        assert torch.bincount(domain.test.targets).tolist() == [TEST // 3] * 3


def test_the_seed_decides() -> None:
    first, again, other = (synthetic(8, seed).domains[0].train.images for seed in (0, 0, 1))
    assert first.equal(again)
    assert not first.equal(other)


def test_domains_differ_in_colour() -> None:
    means = torch.stack([d.train.images.float().mean((0, 1, 2)) for d in synthetic(8, 0).domains])
    assert torch.pdist(means).min() > 20


def test_a_tiny_network_learns_it() -> None:
    data = load_dataset(DataConfig(name="synthetic", image_size=8), seed=0)
    everything = [d.train.batch(torch.arange(TRAIN)) for d in data.domains]
    images = to_float(torch.cat([images for images, _ in everything]))
    labels = torch.cat([labels for _, labels in everything])
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 3),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    model.eval()
    for domain in data.domains:
        tests, targets = domain.test.batch(torch.arange(TEST))
        accuracy = (model(to_float(tests)).argmax(1) == targets).float().mean()
        assert accuracy > 0.8
