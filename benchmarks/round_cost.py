"""What a FOUL round costs its clients, beside a FedAvg round of the same network.

    python benchmarks/round_cost.py digits

Counted FLOPs per local epoch of training (backward passes included), with the outputs of the
frozen parts cached as they are in every round but the first; and seconds, in the same run.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from foul.cli.output import print_table
from foul.config import load_config
from foul.federation.build import build
from foul.learning.rounds import LearningState, learning_round
from foul.unlearning import Case, ForgetRequest, Foul, FoulOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0] if __doc__ else "")
    parser.add_argument("config", nargs="?", default="digits")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    told = measure(arguments.config, arguments.overrides)
    if arguments.json:
        print(json.dumps(told, indent=2))
        return
    rows = [[name, f"{value:.4g}"] for name, value in told.items()]
    print_table(
        f"Client cost of a round per local epoch, {arguments.config}", ["what", "value"], rows
    )


def measure(name: str, overrides: list[str]) -> dict[str, Any]:
    """One warm round of either kind, one local epoch each, all clients taking part."""
    plain = load_config(
        name, [*overrides, "learning.objective=supervised", "learning.supervised.epochs=1"]
    )
    with tempfile.TemporaryDirectory() as scratch:
        setting = build(plain, features=Path(scratch))
        federation, ledger = setting.federation, setting.federation.ledger
        try:
            state = LearningState(dict(setting.initial))
            for stage in ("warm", "fedavg"):
                learning_round(
                    federation, plain.learning, state, federation.clients, setting.buffers, stage
                )
            request = ForgetRequest.parse(
                f"domain:{federation.clients[-1].domain}", federation.clients
            )
            case = Case(
                federation,
                plain,
                request,
                state.tensors,
                1,
                setting.initial,
                setting.buffers,
                len(setting.classes),
                setting.image_size,
            )
            # Without the stand-in and the radius: what a round of training itself costs.
            method = Foul(FoulOptions(epochs=1.0, min_steps=1, control=False, delta=1.0))
            unlearning = method.start(case)
            method.step(case, unlearning)
            before = ledger.total("foul")
            method.step(case, unlearning)
        finally:
            federation.engine.close()
    after, fedavg = ledger.total("foul"), ledger.total("fedavg")
    flops = after.flops_client - before.flops_client
    seconds = after.seconds - before.seconds
    return {
        "FedAvg GFLOP": fedavg.flops_client / 1e9,
        "FOUL GFLOP": flops / 1e9,
        "FLOP ratio": flops / fedavg.flops_client,
        "FedAvg client seconds": fedavg.seconds,
        "FOUL client seconds": seconds,
        "seconds ratio": seconds / fedavg.seconds,
    }


if __name__ == "__main__":
    main()
