"""Counting FLOPs at full speed: one instrumented step per kind and shape, then multiplied."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from torch.utils.flop_counter import FlopCounterMode


class FlopMeter:
    """Adds up FLOPs (matrix products and convolutions, backward included, as torch counts them).

    Torch's counter halves the speed while it is on, and a step of the same kind on the same
    shape costs the same each time; so only the first one is counted.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self.total = 0

    @contextmanager
    def step(self, kind: Hashable) -> Iterator[None]:
        """Everything inside is one step of this kind; the kind must include the batch's shape."""
        if kind in self._known:
            yield
        else:
            with FlopCounterMode(display=False) as counter:
                yield
            self._known[kind] = counter.get_total_flops()
        self.total += self._known[kind]
