import pytest
import torch
from torch import Tensor

from foul.experiments.reproduce.cost import changed, costs, per_round, printed_share, shares
from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.paper import COSTS
from foul.experiments.reproduce.rows import Row, rows_of

from .made_up import REQUEST, done, texts, trial


def made_up(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


SIZES = {
    "E.conv1.weight": made_up(1_000_000),
    "K.layer3.0.conv1.weight": made_up(2_000_000),
    "V.layer2.0.conv2.weight": made_up(200, 200, 1, 5),
    "V.layer3.0.conv1.weight": made_up(600, 500, 1, 1),
    "V.layer3.0.conv2.weight": made_up(1000, 1000, 1, 1),
    "head.weight": made_up(500_000),
}
TRIAL = trial(
    variants("cpu", ("Retrain", "FedRecovery", "FUSED", "FOUL (1)+(2)", "paper's (1)+(2)"))
)


def rows() -> list[Row]:
    figures: dict[str, dict[str, float]] = {
        "Retrain": {"bytes": 100e6, "flops": 1e12, "rounds": 10},
        "FedRecovery": {"bytes": 0, "flops": 0, "rounds": 0},
        "FUSED": {"bytes": 20e6, "flops": 1e12, "rounds": 4},
        "FOUL (1)+(2)": {"bytes": 10e6, "flops": 1e11, "rounds": 5},
        "paper's (1)+(2)": {"bytes": 40e6, "flops": 1e12, "rounds": 10},
    }
    return rows_of(TRIAL, REQUEST, [done(TRIAL, figures)])


def test_what_a_method_may_change() -> None:
    found = {row.label: changed(row, SIZES) for row in rows()}
    assert found == {
        "Retrain": 5_000_000,
        "FedRecovery": None,
        "FUSED": None,
        "FOUL (1)+(2)": 1_000_000,
        "paper's (1)+(2)": 1_500_000,
    }


def test_costs_in_all_and_per_round() -> None:
    by_label = {line[0]: line[1:] for line in texts(costs(rows(), SIZES))}
    assert by_label["Retrain"] == ["5.00", "5.00", "10", "100", "10", "1000", "100"]
    assert by_label["FOUL (1)+(2)"] == ["5.00", "1.00", "5", "10", "2", "100", "20"]
    assert by_label["FedRecovery"] == ["5.00", "-", "0", "0", "-", "0", "-"]
    assert costs(rows(), SIZES).lines[3].cells[4].beside == "10 %"


def test_large_figures_have_no_powers_of_ten() -> None:
    only = trial(variants("cpu", ("Retrain",)))
    figures = {"Retrain": {"bytes": 3.98213e9, "flops": 2.3117e13, "rounds": 30}}
    [line] = texts(costs(rows_of(only, REQUEST, [done(only, figures)]), SIZES))
    assert line[4:] == ["3982", "132.7", "23117", "770.6"]


def test_shares_of_retrains_round_stand_beside_the_papers() -> None:
    by_label = {line[0]: line[1:] for line in texts(shares(rows()))}
    assert by_label["FOUL (1)+(2)"] == ["20.0", "37.5", "20.0", "40.4"]
    assert by_label["FUSED"] == ["50.0", "2.3", "250.0", "48.4"]
    assert by_label["FedRecovery"] == ["-", "100.0", "-", "102.6"]
    assert printed_share(COSTS["NoT"], "flops") == pytest.approx(58.2, abs=0.05)
    assert per_round(rows()[1], "bytes") is None
