"""One pass of the live network over a split, in evaluation mode: what every measurement does."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from foul.client.context import TaskContext
from foul.data.batches import ordered_batches, to_float
from foul.data.domains import Samples

EVALUATION_BATCH = 256

Output = TypeVar("Output")


def forward(
    context: TaskContext, samples: Samples, step: str, compute: Callable[[Tensor], Output]
) -> Iterator[tuple[Output, Tensor]]:
    """`compute` of the normalised images of each batch, and the batch's labels, in order.

    Args:
        step: names the computation, so that its FLOPs are counted once per shape.
    """
    context.net.eval()
    for rows in ordered_batches(len(samples), EVALUATION_BATCH):
        images, labels = samples.batch(rows)
        # Not around the yield: whoever takes the output would be in inference mode, too.
        with torch.inference_mode(), context.meter.step((step, *images.shape)):
            output = compute(to_float(images.to(context.device)))
        yield output, labels.to(context.device)
