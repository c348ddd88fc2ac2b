"""Local SGD: one loop for every phase of every objective."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from foul.client.context import TaskContext
from foul.config.schema import LearningConfig
from foul.data.augment import augment
from foul.data.batches import batch_count, shuffled_batches, to_float
from foul.models import part_of
from foul.seeds import torch_generator

Terms = dict[str, Tensor]
"""Named losses of a batch; their sum is descended."""
MakeOptimiser = Callable[[Mapping[str, nn.Parameter], float, LearningConfig], torch.optim.Optimizer]
"""An optimiser for these named parameters at this rate."""


def sgd(
    parameters: Mapping[str, nn.Parameter], rate: float, config: LearningConfig
) -> torch.optim.Optimizer:
    """SGD with the configured momentum and weight decay."""
    return torch.optim.SGD(
        parameters.values(), rate, config.momentum, weight_decay=config.weight_decay, foreach=True
    )


@dataclass(frozen=True)
class Phase:
    """Some parts of the network descend some losses for some epochs."""

    name: str
    parts: tuple[str, ...]
    """Parts, or single tensors."""
    epochs: float
    rate: float
    loss: Callable[..., Terms]
    """Terms of a batch: of (normalised images, labels), or of whatever else is fetched."""
    fix_statistics: bool = False
    """Normalise with the running statistics of BatchNorm layers, and leave these alone."""
    min_steps: int = 1
    """At least so many steps, however few the samples."""
    rate_epochs: float | None = None
    """What the rate is meant for, if not `epochs`: over more epochs steps are shorter, so that the
    way, rate times steps, stays as long."""
    fresh: bool = False
    """Each step draws its batch from all samples, whatever earlier steps drew; else epochs."""
    optimiser: MakeOptimiser = sgd
    precondition: Callable[[Mapping[str, nn.Parameter]], None] | None = None
    """Changes the gradients of each step before it is made; nothing by default."""


Fetch = Callable[[Tensor], tuple[Tensor, ...]]
"""The batch of these training samples, labels last."""


class LocalTraining:
    """SGD on one client's training samples; randomness is addressed by round and client."""

    def __init__(self, context: TaskContext, config: LearningConfig) -> None:
        self._context = context
        self._config = config
        self._seed = int(context.settings["seed"])
        self._rate_scale = float(context.settings.get("rate_scale", 1.0))

    def generator(self, purpose: str, device: bool = False) -> torch.Generator:
        """A stream for this purpose, round and client, on the CPU or on the device."""
        context = self._context
        where = str(context.device) if device else "cpu"
        return torch_generator(self._seed, purpose, context.round, context.data.id, where)

    def run(self, phase: Phase, fetch: Fetch | None = None) -> dict[str, float]:
        """Train this phase; answers the mean of each loss term, as `phase/term`.

        Batches are images, or what `fetch` makes of the samples' positions.
        """
        context, config = self._context, self._config
        context.net.train()
        if phase.fix_statistics or 0 != config.fix_statistics_after < context.round:
            fix_statistics(context.net)
        parameters = select_parameters(context.net, phase.parts)
        optimiser = phase.optimiser(parameters, self._rate(phase) * self._rate_scale, config)
        sums: dict[str, Tensor] = {}
        seen = 0
        for batch in self._batches(phase, fetch or self._images(phase)):
            labels = batch[-1]
            with context.meter.step((phase.name, *phase.parts, *batch[0].shape)):
                terms = phase.loss(*batch)
                optimiser.zero_grad(set_to_none=True)
                total = torch.stack(list(terms.values())).sum()
                torch.autograd.backward(total)
                if phase.precondition:
                    phase.precondition(parameters)
            if config.max_grad_norm:
                nn.utils.clip_grad_norm_(parameters.values(), config.max_grad_norm, foreach=True)
            optimiser.step()
            for name, term in terms.items():
                value = term.detach() * len(labels)
                sums[name] = sums[name] + value if name in sums else value
            seen += len(labels)
        return {f"{phase.name}/{name}": float(value) / seen for name, value in sums.items()}

    def _steps(self, phase: Phase, epochs: float) -> int:
        """Local steps of so many epochs, perhaps a fraction of one."""
        count = batch_count(len(self._context.data.train), self._config.batch_size)
        return max(phase.min_steps, round(epochs * count))

    def _rate(self, phase: Phase) -> float:
        if phase.rate_epochs is None:
            return phase.rate
        return phase.rate * (
            self._steps(phase, phase.rate_epochs) / self._steps(phase, phase.epochs)
        )

    def _batches(self, phase: Phase, fetch: Fetch) -> Iterator[tuple[Tensor, ...]]:
        """`phase.epochs` shuffled epochs, perhaps a fraction of one, or as many fresh draws."""
        count, size = len(self._context.data.train), self._config.batch_size
        if count == 0:
            raise ValueError("this client has no training samples")
        shuffle = self.generator(f"shuffle/{phase.name}")
        steps = self._steps(phase, phase.epochs)
        while steps > 0:
            epoch = (
                [torch.randperm(count, generator=shuffle)[:size]]
                if phase.fresh
                else shuffled_batches(count, size, shuffle)
            )
            for rows in epoch:
                yield tuple(part.to(self._context.device) for part in fetch(rows))
                steps -= 1
                if steps == 0:
                    return

    def _images(self, phase: Phase) -> Fetch:
        """Normalised, perhaps augmented images, and labels."""
        samples, settings = self._context.data.train, self._config.augment
        noise = self.generator(f"augment/{phase.name}")

        def fetch(rows: Tensor) -> tuple[Tensor, ...]:
            images, labels = samples.batch(rows)
            ready = to_float(images.to(self._context.device))
            if settings.crop < 1 or settings.flip:
                ready = augment(ready, noise, scale=(settings.crop, 1.0), flip=settings.flip)
            return ready, labels

        return fetch


def select_parameters(net: nn.Module, parts: tuple[str, ...]) -> dict[str, nn.Parameter]:
    """Make just these parts, or single tensors, trainable: no gradient is computed for others."""
    chosen, wanted = {}, set(parts)
    for name, parameter in net.named_parameters():
        trainable = not wanted.isdisjoint((name, part_of(name)))
        parameter.requires_grad_(trainable)
        if trainable:
            chosen[name] = parameter
    return chosen


def fix_statistics(net: nn.Module) -> None:
    """Let BatchNorm layers normalise with their running statistics, and leave these alone."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
