"""How far apart are the four styles of the embedded digits?

Trains a small CNN on all four styles, then four times with one style left out, and compares
the accuracy on that style's test set. A gap of 15 points or more means that a style really is
a domain of its own.
"""

import argparse
import json
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from foul.config.schema import DataConfig
from foul.data import Domain, load_dataset, ordered_batches, shuffled_batches, to_float

BATCH = 64


def network(classes: int) -> nn.Sequential:
    """Three convolutions with BatchNorm and a linear layer."""
    layers: list[nn.Module] = []
    widths = (3, 16, 32, 64)
    for inside, outside in pairwise(widths):
        layers += [
            nn.Conv2d(inside, outside, 3, padding=1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    layers += [nn.Flatten(), nn.Linear(widths[-1] * 9, classes)]
    return nn.Sequential(*layers)


def tensors(domains: list[Domain], part: str) -> tuple[Tensor, Tensor]:
    """All images and labels of one part of these domains."""
    pairs = []
    for domain in domains:
        samples = getattr(domain, part)
        pairs.append(samples.batch(torch.arange(len(samples))))
    images = torch.cat([images for images, _ in pairs])
    return to_float(images), torch.cat([labels for _, labels in pairs])


def train(domains: list[Domain], epochs: int, seed: int) -> nn.Sequential:
    """Plain supervised training, with a rate that decays along a cosine."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images, labels = tensors(domains, "train")
    model = network(10)
    steps = epochs * -(-len(labels) // BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for rows in shuffled_batches(len(labels), BATCH, generator):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Sequential, domain: Domain) -> float:
    """Per cent of the domain's test images that the model gets right."""
    images, labels = tensors([domain], "test")
    right = 0
    for rows in ordered_batches(len(labels), 250):
        right += int((model(images[rows]).argmax(1) == labels[rows]).sum())
    return 100 * right / len(labels)


def measure(epochs: int, seed: int) -> dict[str, dict[str, float]]:
    """Accuracy on each style when trained with and without it."""
    domains = list(load_dataset(DataConfig(), seed).domains)
    with_all = train(domains, epochs, seed)
    result = {}
    for domain in domains:
        others = [other for other in domains if other is not domain]
        known = accuracy(with_all, domain)
        unknown = accuracy(train(others, epochs, seed), domain)
        result[domain.name] = {"with": known, "without": unknown, "gap": known - unknown}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1, help="repeat with seeds 0, 1, ...")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    runs = [measure(options.epochs, seed) for seed in range(options.seeds)]
    mean = {
        style: {key: sum(run[style][key] for run in runs) / len(runs) for key in runs[0][style]}
        for style in runs[0]
    }
    if options.json:
        print(json.dumps({"epochs": options.epochs, "seeds": options.seeds, "styles": mean}))
        return
    print(f"{'style':10} {'trained with it':>16} {'without it':>11} {'gap':>6}")
    for style, row in mean.items():
        print(f"{style:10} {row['with']:>14.1f} % {row['without']:>9.1f} % {row['gap']:>6.1f}")


if __name__ == "__main__":
    main()
