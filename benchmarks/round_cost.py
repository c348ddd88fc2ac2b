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
from foul.config.schema import Config
from foul.federation.build import Setting, build
from foul.federation.ledger import Cost
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
    """Warm rounds of either kind with one local epoch and with two, all clients taking part: what
    the second epoch adds is training alone, without the scoring that a round has once."""
    plain = load_config(name, [*overrides, "learning.objective=supervised"])
    with tempfile.TemporaryDirectory() as scratch:
        setting = build(plain, features=Path(scratch))
        try:
            state = LearningState(dict(setting.initial))
            _fedavg(setting, plain, state, 1)
            fedavg = [_fedavg(setting, plain, state, epochs) for epochs in (1, 2)]
            case = _case(setting, plain, state)
            foul = [_foul(case, epochs) for epochs in (1, 2)]
        finally:
            setting.federation.engine.close()
    flops = [[cost.flops_client for cost in costs] for costs in (fedavg, foul)]
    return {
        "FedAvg GFLOP": flops[0][0] / 1e9,
        "FOUL GFLOP": flops[1][0] / 1e9,
        "FLOP ratio": flops[1][0] / flops[0][0],
        "FLOP ratio, training alone": (flops[1][1] - flops[1][0]) / (flops[0][1] - flops[0][0]),
        "FedAvg client seconds": fedavg[0].seconds,
        "FOUL client seconds": foul[0].seconds,
        "seconds ratio": foul[0].seconds / fedavg[0].seconds,
    }


def _fedavg(setting: Setting, config: Config, state: LearningState, epochs: int) -> Cost:
    """What clients spent in one round of FedAvg."""
    federation, stage = setting.federation, f"fedavg {epochs}"
    supervised = config.learning.supervised.model_copy(update={"epochs": epochs})
    learning = config.learning.model_copy(update={"supervised": supervised})
    before = federation.ledger.total(stage)
    learning_round(federation, learning, state, federation.clients, setting.buffers, stage)
    return _spent(before, federation.ledger.total(stage))


def _case(setting: Setting, config: Config, state: LearningState) -> Case:
    """The last domain asks to be forgotten."""
    federation = setting.federation
    return Case(
        federation,
        config,
        ForgetRequest.parse(f"domain:{federation.clients[-1].domain}", federation.clients),
        state.tensors,
        state.round,
        setting.initial,
        setting.buffers,
        len(setting.classes),
        setting.image_size,
    )


def _foul(case: Case, epochs: int) -> Cost:
    """What clients spent in the second round of FOUL, which has the outputs of the first."""
    # Without the stand-in and the radius: what a round of training itself costs.
    method = Foul(
        FoulOptions(epochs=epochs, unfit_epochs=epochs, min_steps=1, control=False, delta=1.0)
    )
    state, ledger = method.start(case), case.federation.ledger
    method.step(case, state)
    before = ledger.total(method.name)
    method.step(case, state)
    return _spent(before, ledger.total(method.name))


def _spent(before: Cost, after: Cost) -> Cost:
    return Cost(
        flops_client=after.flops_client - before.flops_client,
        seconds=after.seconds - before.seconds,
    )


if __name__ == "__main__":
    main()
