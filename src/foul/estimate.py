"""What a configuration will take, measured on a few steps instead of guessed."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from foul.client.worker import Worker
from foul.config.schema import Config
from foul.data import ClientData, Samples
from foul.data.counts import image_counts
from foul.devices import pick_device, plan_cpu
from foul.errors import MachineError
from foul.federation.build import initial_network
from foul.federation.federation import round_half_up
from foul.federation.messages import Request
from foul.learning.objectives import OBJECTIVES
from foul.models import part_of, summarise

_BATCHES = 4


@dataclass(frozen=True)
class Estimate:
    """Cost of the learning stage, if it runs all its rounds."""

    clients: int
    training_images: int
    parameters: int
    seconds_per_round: float
    minutes: float
    megabytes_per_round: float
    checkpoint_bytes: int
    run_bytes: int
    cache_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def estimate(config: Config) -> Estimate:
    """Train on a few batches of random pixels and multiply."""
    counts, image_size = image_counts(config.data), config.data.image_size
    classes = counts.classes
    device = pick_device(config.device)
    plan = plan_cpu(config.workers, config.threads, device)
    torch.set_num_threads(plan.threads)
    net = initial_network(config, classes, image_size)
    sizes = summarise(net)
    images = sum(counts.domains.values())
    share = (1 - config.data.test_fraction) * (1 - config.clients.validation_fraction)
    training = int(images * share)
    per_image = _seconds_per_image(config, classes, image_size)
    clients = config.clients.per_domain * len(counts.domains)
    asked = max(1, round_half_up(config.federation.participation * clients))
    parts = OBJECTIVES[config.learning.objective].parts(config.learning)
    state = net.state_dict()
    travelling = sum(t.nbytes for name, t in state.items() if part_of(name) in parts)
    checkpoint = sum(t.nbytes for t in state.values())
    checkpoint *= 2 if config.learning.server_momentum else 1
    per_round = per_image * training * config.federation.participation / plan.workers
    return Estimate(
        clients=clients,
        training_images=training,
        parameters=sizes.parameters,
        seconds_per_round=per_round,
        minutes=per_round * config.learning.rounds / 60,
        megabytes_per_round=2 * asked * travelling / 1e6,
        checkpoint_bytes=checkpoint,
        run_bytes=checkpoint * (config.federation.keep_checkpoints + 1),
        cache_bytes=images * image_size**2 * 3,
    )


def _seconds_per_image(config: Config, classes: int, image_size: int) -> float:
    """Seconds of local training per image of a client, after a warm-up."""
    count = _BATCHES * config.learning.batch_size
    pixels = torch.randint(0, 256, (count, image_size, image_size, 3), dtype=torch.uint8)
    samples = Samples.of(pixels, torch.arange(count) % classes)
    client = ClientData("probe", "probe", samples, samples.subset([]), samples.subset([]))
    net = initial_network(config, classes, image_size)
    worker = Worker([client], net, pick_device(config.device))
    request = Request(
        "probe", "learn", 1, {}, {"learning": config.learning.model_dump(mode="json"), "seed": 0}
    )
    warm_up = worker.perform(request)
    if warm_up.error:
        raise MachineError(f"A training step fails here: {warm_up.error}")
    start = time.perf_counter()
    worker.perform(request)
    return (time.perf_counter() - start) / count
