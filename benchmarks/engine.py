"""What the federation costs on top of training: a federated round beside a plain PyTorch loop.

    python benchmarks/engine.py [--data digits] [--repeat 5] [--json]

Both train the same network on the same batches of 20 clients with the same optimiser: the plain
loop in one process with all threads and no federation around it, the engines as `foul learn` uses
them. Repetitions are interleaved, so a busy moment hits all alike; medians are shown.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional

from foul import build_clients, load_config, load_dataset
from foul.client.worker import Worker
from foul.config import Config
from foul.data import ClientData, shuffled_batches, to_float
from foul.devices import pick_device, plan_cpu
from foul.federation.build import initial_network
from foul.federation.engine import Engine
from foul.federation.federation import Federation
from foul.federation.inprocess import InProcessEngine
from foul.federation.processes import ProcessEngine
from foul.learning.rounds import LearningState, learning_round
from foul.seeds import torch_generator


def plain_loop(
    config: Config, clients: list[ClientData], classes: int, size: int
) -> Callable[[], None]:
    """One epoch over all clients' batches with nothing but PyTorch."""
    net = initial_network(config, classes, size).train()
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learning = config.learning
    parameters = [p for name, p in net.named_parameters() if not name.startswith(("D.", "xi."))]
    optimiser = torch.optim.SGD(
        parameters,
        learning.supervised.rate,
        learning.momentum,
        weight_decay=learning.weight_decay,
        foreach=True,
    )

    def run() -> None:
        for client in clients:
            shuffle = torch_generator(0, "plain", 1, client.id)
            for rows in shuffled_batches(len(client.train), learning.batch_size, shuffle):
                images, labels = client.train.batch(rows)
                optimiser.zero_grad(set_to_none=True)
                torch.autograd.backward(functional.cross_entropy(net(to_float(images)), labels))
                torch.nn.utils.clip_grad_norm_(parameters, learning.max_grad_norm, foreach=True)
                optimiser.step()

    return run


def federated_round(config: Config, engine: Engine, classes: int, size: int) -> Callable[[], None]:
    """One round of the learning stage, averaging and ledger included."""
    net = initial_network(config, classes, size)
    federation = Federation(engine, config.federation, 0)
    state = LearningState(dict(net.state_dict()))

    def run() -> None:
        learning_round(
            federation, config.learning, state, federation.clients, frozenset(), "learning"
        )

    return run


def measure(
    rivals: dict[str, tuple[int, Callable[[], None]]], samples: int, repeat: int
) -> dict[str, float]:
    """Samples per second of each rival, from the median of interleaved repetitions."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for repetition in range(repeat + 1):
        for name, (threads, run) in rivals.items():
            torch.set_num_threads(threads)
            start = time.perf_counter()
            run()
            if repetition:  # The first one warms up.
                seconds[name].append(time.perf_counter() - start)
    return {name: samples / statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", default="digits", help="a shipped configuration")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    single = ["learning.objective=supervised", "learning.supervised.epochs=1"]
    config = load_config(
        options.data, [*single, "clients.validation_fraction=0", *options.overrides]
    )
    plan = plan_cpu(0, 0, pick_device("cpu"))
    cores = plan.workers * plan.threads
    data = load_dataset(config.data, config.seed)
    clients = sorted(build_clients(data, config.clients, config.seed), key=lambda c: c.id)
    classes, size = len(data.classes), data.image_size
    samples = sum(len(client.train) for client in clients)

    def worker() -> Worker:
        return Worker(clients, initial_network(config, classes, size))

    pool = ProcessEngine(worker(), plan.workers, plan.threads)
    process_engine = f"process engine, {plan.workers} x {plan.threads} thread"
    rivals = {process_engine: (1, federated_round(config, pool, classes, size))}
    for threads in sorted({1, cores}):
        inside = InProcessEngine(worker())
        rivals[f"plain loop, threads {threads}"] = (
            threads,
            plain_loop(config, clients, classes, size),
        )
        rivals[f"in-process engine, threads {threads}"] = (
            threads,
            federated_round(config, inside, classes, size),
        )
    rates = measure(rivals, samples, options.repeat)
    pool.close()
    plain = {name.split()[-1]: rate for name, rate in rates.items() if name.startswith("plain")}
    result = []
    for name, rate in rates.items():
        peer = plain[name.split()[-1]] if name != process_engine else max(plain.values())
        result.append(
            {
                "what": name,
                "samples_per_second": round(rate, 1),
                "ratio_to_plain_loop": round(rate / peer, 3),
            }
        )
    if options.json:
        print(json.dumps({"clients": len(clients), "samples": samples, "rows": result}, indent=2))
        return
    print(f"{len(clients)} clients, {samples} samples, batch {config.learning.batch_size}")
    for row in result:
        print(
            f"{row['what']:34} {row['samples_per_second']:9.1f} samples/s   "
            f"ratio {row['ratio_to_plain_loop']}"
        )
    print("The in-process engine is compared with the plain loop of as many threads,")
    print("the process engine (what `foul learn` uses) with the fastest plain loop.")


if __name__ == "__main__":
    main()
