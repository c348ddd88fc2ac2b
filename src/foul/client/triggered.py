"""The task `triggered`: how often the backdoor's trigger decides the network's answer."""

from foul.client.context import TaskContext
from foul.client.forward import forward
from foul.data.backdoor import stamp
from foul.data.domains import Samples
from foul.federation.messages import Numbers, Tensors


def triggered(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Test samples of other classes than the target, and how many of them the deployed head
    answers with the target when they carry the trigger."""
    context.load()
    target, test = context.settings["target"], context.data.test
    others = test.index[test.targets != target]
    samples = Samples.of(stamp(test.images[others], context.settings["size"]), test.labels[others])
    fooled = sum(
        int((logits.argmax(1) == target).sum())
        for logits, _ in forward(context, samples, "triggered", context.net)
    )
    return {}, {"samples": len(samples), "fooled": fooled}
