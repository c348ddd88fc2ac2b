"""Adapters: few numbers that change the weights of some layers, and can be taken off again."""

from abc import ABC, abstractmethod
from typing import Any

import torch

from foul.federation.messages import Tensors
from foul.seeds import torch_generator


class Adapters(ABC):
    """How few values change the tensors of `base`. Server and clients make the same ones from the
    same settings, so only the values travel."""

    def __init__(self, base: Tensors, seed: int) -> None:
        self.base = base
        self.seed = seed

    @abstractmethod
    def start(self) -> Tensors:
        """Values that change nothing."""

    @abstractmethod
    def adapted(self, values: Tensors) -> Tensors:
        """The tensors of `base` as the values change them."""

    @abstractmethod
    def gradients(self, values: Tensors, gradients: Tensors) -> Tensors:
        """The values' gradients, given those of the adapted tensors."""


class SparseAdapters(Adapters):
    r""":math:`W + M \odot A`: values at a fixed random share of the places of each tensor."""

    def __init__(self, base: Tensors, seed: int, density: float) -> None:
        super().__init__(base, seed)
        self.places = {
            name: random_places(tensor.numel(), density, seed, name).to(tensor.device)
            for name, tensor in base.items()
        }

    def start(self) -> Tensors:
        return {name: self.base[name].new_zeros(len(p)) for name, p in self.places.items()}

    def adapted(self, values: Tensors) -> Tensors:
        return {
            name: tensor.flatten().index_add(0, self.places[name], values[name]).view_as(tensor)
            for name, tensor in self.base.items()
        }

    def gradients(self, values: Tensors, gradients: Tensors) -> Tensors:
        return {name: gradients[name].flatten()[places] for name, places in self.places.items()}


class LowRankAdapters(Adapters):
    r""":math:`W + \frac{\alpha}{r} B A` on weights flattened to `[out, rest]` (LoRA), with A of r
    rows and B of r columns. Biases have no adapter.

    With G the gradient of W and :math:`s = \alpha / r`, that of B is :math:`s G A^T`, that of A is
    :math:`s B^T G`.
    """

    def __init__(self, base: Tensors, seed: int, rank: int, alpha: float) -> None:
        super().__init__({name: t for name, t in base.items() if t.dim() > 1}, seed)
        self.rank = rank
        self.scale = alpha / rank

    def start(self) -> Tensors:
        values: Tensors = {}
        for name, tensor in self.base.items():
            width = tensor[0].numel()
            # Drawn on the CPU, so that every device starts with the same bits.
            rows = torch.empty(self.rank, width)
            generator = torch_generator(self.seed, "adapters/low-rank", client=name)
            rows.uniform_(-(width**-0.5), width**-0.5, generator=generator)
            values[f"{name}.A"] = rows.to(tensor)
            values[f"{name}.B"] = tensor.new_zeros(len(tensor), self.rank)
        return values

    def adapted(self, values: Tensors) -> Tensors:
        return {
            name: tensor + self.scale * (values[f"{name}.B"] @ values[f"{name}.A"]).view_as(tensor)
            for name, tensor in self.base.items()
        }

    def gradients(self, values: Tensors, gradients: Tensors) -> Tensors:
        found: Tensors = {}
        for name in self.base:
            flat = gradients[name].flatten(1)
            found[f"{name}.A"] = self.scale * values[f"{name}.B"].T @ flat
            found[f"{name}.B"] = self.scale * flat @ values[f"{name}.A"].T
        return found


FORMS: dict[str, type[Adapters]] = {"sparse": SparseAdapters, "low-rank": LowRankAdapters}


def make_adapters(base: Tensors, form: str, **settings: Any) -> Adapters:
    """Adapters of this form, as JSON-like settings describe them."""
    return FORMS[form](base, **settings)


def random_places(count: int, density: float, seed: int, name: str) -> torch.Tensor:
    """A random share of `range(count)`, at least one, in order; by the seed and the name alone."""
    generator = torch_generator(seed, "adapters/places", client=name)
    share = max(1, round(density * count))
    return torch.randperm(count, generator=generator)[:share].sort().values
