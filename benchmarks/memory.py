"""Peak memory of one round must not grow with the number of clients.

    python benchmarks/memory.py [--clients 10 1000] [--json]

Each count runs in a process of its own: ResNet-18 at full width, one small batch per client. All
clients share the same few images, so that what is compared is the federation, not the data.
"""

import argparse
import json
import resource
import subprocess
import sys

import torch

from foul import load_config
from foul.client.worker import Worker
from foul.data import ClientData, Samples
from foul.federation.build import initial_network
from foul.federation.federation import Federation
from foul.federation.inprocess import InProcessEngine
from foul.learning.rounds import LearningState, learning_round


def peak(clients: int) -> float:
    """Peak resident MB of one supervised round over so many clients."""
    config = load_config(
        None,
        [
            "model.backbone=resnet18",
            "model.split=2",
            "data.image_size=32",
            "learning.objective=supervised",
            "learning.supervised.epochs=1",
            "learning.batch_size=4",
        ],
    )
    pixels = torch.randint(0, 256, (4, 32, 32, 3), dtype=torch.uint8)
    samples = Samples.of(pixels, torch.arange(4))
    empty = samples.subset([])
    crowd = [ClientData(f"c{n:05d}", "d", samples, empty, empty) for n in range(clients)]
    torch.set_num_threads(1)
    net = initial_network(config, 4, 32)
    state = LearningState({name: t.clone() for name, t in net.state_dict().items()})
    federation = Federation(InProcessEngine(Worker(crowd, net)), config.federation, 0)
    learning_round(federation, config.learning, state, federation.clients, frozenset(), "learning")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inner", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        print(peak(options.inner))
        return
    rows = []
    for count in options.clients:
        command = [sys.executable, __file__, "--inner", str(count)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append({"clients": count, "peak_mb": round(float(output), 1)})
    for row in rows:
        row["ratio"] = round(row["peak_mb"] / rows[0]["peak_mb"], 3)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['clients']:6d} clients   peak {row['peak_mb']:8.1f} MB   ratio {row['ratio']}")


if __name__ == "__main__":
    main()
