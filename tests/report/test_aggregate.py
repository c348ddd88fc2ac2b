import math
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.report.aggregate import aggregate, best, chosen, find, share, stat, to_json
from foul.report.metrics import COMPARISON, DISTANCE

from .reported import THREE, entries, result, rows

BY_KEY = {shown.key: shown for shown in COMPARISON}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_mean_and_sample_deviation(values: list[float]) -> None:
    found = stat(values)
    assert found is not None
    assert found.n == len(values)
    assert found.mean == pytest.approx(fmean(values), abs=1e-6)
    assert found.std == pytest.approx(stdev(values), abs=1e-6)


def test_one_value_has_no_deviation() -> None:
    found = stat([3])
    assert found is not None
    assert found.to_dict() == {"mean": 3.0, "std": None, "n": 1}


@pytest.mark.parametrize("nothing", [None, "text", True, math.nan, math.inf, [1], {}])
def test_what_is_no_number_does_not_count(nothing: Any) -> None:
    assert stat([nothing]) is None
    found = stat([1.0, nothing, 2.0])
    assert found is not None
    assert (found.mean, found.n) == (1.5, 2)


def test_gaps_and_shares_of_one_seed() -> None:
    learned, foul, retrain = rows(*THREE)
    assert foul.gaps["fa"].mean == pytest.approx(-0.1)
    assert foul.gaps["mia_accuracy"].mean == pytest.approx(0.05)
    assert foul.shares["bytes"].mean == 0.25
    assert learned.shares["flops"].mean == 0
    assert retrain.gaps["fa"].mean == 0
    # |50 - 60|, no shortfall of RA and TA, |55 - 50|: a mean of four.
    assert foul.values["distance"].mean == pytest.approx(15 / 4)
    # The attack's accuracy was not measured on the learned model: a mean of three.
    assert learned.values["distance"].mean == pytest.approx(30 / 3)
    assert retrain.values["distance"].mean == 0


def test_gaps_are_taken_seed_by_seed() -> None:
    told = [
        result("foul", 0.5, seed=0),
        result("foul", 0.7, seed=1),
        result("foul", 0.9, seed=2),
        result("retrain", 0.4, seed=0),
        result("retrain", 0.8, seed=1),
    ]
    foul = find(rows(*told), "foul")
    assert foul is not None
    assert foul.values["fa"].mean == pytest.approx(0.7)
    assert foul.values["fa"].std == pytest.approx(0.2)
    # +0.1 and -0.1; seed 2 has no Retrain.
    assert foul.gaps["fa"].mean == pytest.approx(0)
    assert foul.gaps["fa"].std == pytest.approx(math.sqrt(0.02))
    assert (foul.values["fa"].n, foul.gaps["fa"].n) == (3, 2)
    assert foul.values["distance"].mean == pytest.approx(10 / 3)


def test_runs_of_other_settings_have_their_own_retrain() -> None:
    first = entries(result("foul", 0.5), result("retrain", 0.6))
    other = [
        type(entry)(entry.run, f"{entry.label} (b)", 1, entry.result)
        for entry in entries(result("foul", 0.5), result("retrain", 0.1))
    ]
    gaps = {row.label: row.gaps["fa"].mean for row in aggregate([*first, *other])}
    assert gaps["foul"] == pytest.approx(-0.1)
    assert gaps["foul (b)"] == pytest.approx(0.4)


def test_the_learned_model_comes_first_and_retrain_last() -> None:
    told = rows(result("retrain"), result("foul"), result("none"), result("continue"))
    assert [row.name for row in told] == ["learned", "foul", "continue", "retrain"]


def test_without_figures_there_is_nothing_and_no_failure() -> None:
    bare = {"method": "foul", "forget": "domain:east"}
    foul, retrain = rows(bare, {**bare, "method": "retrain", "fa": None})
    assert foul.values == foul.gaps == foul.shares == retrain.values == {}


def test_retrain_does_not_forget_in_rounds() -> None:
    foul, retrain = rows(result("foul", t2f=3.0), result("retrain", t2f=-5.0, rounds_to_retrain=9))
    assert foul.values["t2f"].mean == 3
    assert not {"t2f", "rounds_to_retrain"} & set(retrain.values)


@pytest.mark.parametrize(
    ("key", "winner"),
    [("fa", "near"), ("ra", "far"), ("bytes", "far"), ("distance", "near"), ("mia_auc", "near")],
)
def test_the_best_of_a_column(key: str, winner: str) -> None:
    told = rows(
        result("none", 0.6, ra=1.0, bytes=0),
        # Far below Retrain is further off than a little above it.
        result("far", 0.1, ra=0.95, bytes=10, mia_auc=0.2),
        result("near", 0.65, ra=0.85, bytes=20, mia_auc=0.6),
        result("retrain", 0.6, ra=0.9, bytes=100, mia_auc=0.5),
    )
    assert best(told, BY_KEY[key]) == {winner}


def test_equals_share_and_one_alone_beats_nobody() -> None:
    a, b, retrain = result("a", 0.5), result("b", 0.7), result("retrain", 0.6)
    assert best(rows(a, b, retrain), BY_KEY["fa"]) == {"a", "b"}
    assert best(rows(a, retrain), BY_KEY["fa"]) == set()
    assert best(rows(a, b), BY_KEY["fa"]) == set()


def test_a_matched_retrain_is_no_competitor() -> None:
    told = rows(result("retrain-matched", 0.6), result("a", 0.1), result("retrain", 0.6))
    assert best(told, DISTANCE) == set()
    found = chosen(told)
    assert found is not None
    assert found.label == "a"


def test_the_method_to_speak_of() -> None:
    a, b = result("a", 0.1), result("b", 0.5)
    nearest, first = chosen(rows(a, b, result("retrain", 0.6))), chosen(rows(a, b))
    assert nearest is not None
    assert first is not None
    assert (nearest.label, first.label) == ("b", "a")
    assert chosen(rows(result("none"), result("retrain"))) is None


def test_json_has_mean_std_and_n() -> None:
    told = to_json(rows(*THREE))
    assert told["foul"]["fa"] == {"mean": 0.5, "std": None, "n": 1}
    assert told["foul"]["fa_gap"]["mean"] == pytest.approx(-0.1)
    assert told["foul"]["bytes_share"]["mean"] == 0.25
    assert "t2f" not in told["foul"]


def test_a_share_reads_well_however_large_it_is() -> None:
    assert [share(x) for x in (0.0884, 0.17, 1.0, 9.99, 17.5)] == [
        "8.84 %",
        "17 %",
        "100 %",
        "999 %",
        "17.5 times",
    ]
