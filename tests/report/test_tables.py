from typing import Any

import pytest

from foul.report.aggregate import Stat
from foul.report.metrics import COUNT, PERCENT, Unit
from foul.report.tables import (
    MINUS,
    Cell,
    Table,
    attacks,
    cell,
    comparison,
    costs,
    dig,
    knowledge,
    learning_costs,
)

from .reported import THREE, evaluation, result, rows


def column(table: Table, name: str) -> list[Cell]:
    place = [head.name for head in table.columns].index(name)
    return [line.cells[place] for line in table.lines]


def texts(table: Table, name: str) -> list[str]:
    return [cell.text for cell in column(table, name)]


@pytest.mark.parametrize(
    ("value", "unit", "text", "spread"),
    [
        (None, PERCENT, "-", ""),
        (Stat(0.716, None, 1), PERCENT, "71.6", ""),
        (Stat(0.716, 0.0123, 3), PERCENT, "71.6", "± 1.2"),
        (Stat(-0.5, None, 1), Unit(), f"{MINUS}0.5", ""),
        (Stat(7.0, None, 1), COUNT, "7", ""),
        (Stat(7.0, 0.0, 3), COUNT, "7", ""),
        (Stat(7.5, 0.7, 2), COUNT, "7.5", "± 0.7"),
    ],
)
def test_a_value_in_its_unit(value: Stat | None, unit: Unit, text: str, spread: str) -> None:
    assert cell(value, unit) == Cell(text, spread)


def test_the_comparison_has_gaps_shares_and_marks() -> None:
    table = comparison(rows(*THREE, result("continue", 0.8, bytes=2_000_000)))
    assert texts(table, "method") == ["learned", "foul", "continue", "retrain"]
    assert [c.text for c in column(table, "FA %")] == ["90.0", "50.0", "80.0", "60.0"]
    assert [c.beside for c in column(table, "FA %")] == ["+30.0", f"{MINUS}10.0", "+20.0", ""]
    assert [c.best for c in column(table, "FA %")] == [False, True, False, False]
    assert [c.beside for c in column(table, "MB")] == ["0 %", "25 %", "50 %", ""]
    assert texts(table, "MIA %") == ["-", "55.0", "-", "50.0"]
    assert [line.reference for line in table.lines] == [True, False, False, True]


def test_columns_that_nobody_has_are_left_out() -> None:
    names = [head.name for head in comparison(rows(result("foul"))).columns]
    assert not {"MIA %", "T2F", "off by", "n"} & set(names)
    assert {"FA %", "rounds"} <= set(names)


def test_several_seeds_show_how_many() -> None:
    table = comparison(rows(result("foul", 0.5, seed=0), result("foul", 0.7, seed=1)))
    assert texts(table, "n") == ["2"]
    assert column(table, "FA %") == [Cell("60.0", "± 14.1")]


def test_costs_with_learning_in_a_line_of_its_own() -> None:
    spent = {"bytes_down": 1e6, "bytes_up": 2e6, "seconds": 5.0}
    learning = learning_costs([{"costs": {"learning": spent}, "wall_seconds": 3.0}, {}])
    told = [r | {"bytes_down": r["bytes"] / 2, "wall_seconds": 1.0} for r in THREE]
    table = costs(rows(*told), learning)
    assert texts(table, "method") == ["learning, once", "foul", "retrain"]
    assert texts(table, "MB down") == ["1.0", "0.5", "2.0"]
    assert texts(table, "MB") == ["3.0", "1.0", "4.0"]
    assert texts(table, "GFLOP") == ["-", "2", "8"]
    assert texts(table, "wall s") == ["3.0", "1.0", "1.0"]
    assert texts(costs(rows(*told), {}), "method") == ["foul", "retrain"]


def test_every_attack_against_every_model() -> None:
    told = {"none": evaluation(0.9, auc=0.7), "foul": evaluation(0.5, auc=0.6)}
    table = attacks(rows(result("none"), result("foul"), evaluations=told))
    assert texts(table, "attack") == ["loss", "", "modified entropy", ""]
    assert texts(table, "model") == ["learned", "foul", "learned", "foul"]
    assert column(table, "AUC")[0] == Cell("0.700", "", "[0.600, 0.800]")
    assert texts(table, "accuracy %") == ["55.0"] * 4
    assert texts(table, "TPR at 1 % FPR") == ["2.0"] * 4
    assert texts(table, "members / others") == ["20 / 10"] * 4


def test_attacks_over_seeds_have_a_spread_instead_of_an_interval() -> None:
    told = rows(result("foul", seed=0, mia_auc=0.5), result("foul", seed=1, mia_auc=0.7))
    assert column(attacks(told), "AUC") == [Cell("0.600", "± 0.141")]


def test_the_attack_of_the_results_where_no_other_was_run() -> None:
    table = attacks(rows(result("foul", mia_auc=0.5, mia_low=0.4, mia_high=0.6)))
    assert column(table, "AUC") == [Cell("0.500", "", "[0.400, 0.600]")]
    assert texts(table, "members / others") == ["-"]
    assert attacks(rows({"method": "foul"})).lines == []


def test_what_models_still_know() -> None:
    told = {"foul": evaluation(0.5), "none": evaluation(0.9) | {"kl": None, "backdoor": None}}
    table = knowledge(rows(result("none"), result("foul"), evaluations=told))
    assert texts(table, "model") == ["learned", "foul", "floor of KL"]
    assert texts(table, "K class %") == ["90.0", "90.0", ""]
    assert texts(table, "KL forget") == ["-", "0.250", "0.062"]
    assert texts(table, "relearn") == ["2", "2", ""]
    assert texts(table, "backdoor %") == ["-", "37.5", ""]
    assert "V domain %" not in [head.name for head in table.columns]


def test_what_did_not_come_back_took_more_than_was_tried() -> None:
    told = {"a": evaluation(0.5), "b": evaluation(0.5)}
    told["b"]["relearn"] = {"rounds": None, "curve": [0.1, 0.2, 0.3], "target": 0.9}
    assert texts(knowledge(rows(result("a"), result("b"), evaluations=told)), "relearn") == [
        "2",
        "> 2",
        "",
    ]


def test_older_runs_know_the_probe_of_k_only() -> None:
    table = knowledge(rows(result("foul", k_probe=0.58)))
    assert [head.name for head in table.columns] == ["model", "K class %"]
    assert texts(table, "K class %") == ["58.0"]
    assert knowledge(rows(result("foul"))).lines == []


@pytest.mark.parametrize(
    ("told", "found"),
    [({"a": {"b": 1}}, 1), ({"a": None}, None), ({}, None), (None, None), ({"a": 3}, None)],
)
def test_digging_ends_where_nothing_is(told: Any, found: Any) -> None:
    assert dig(told, "a", "b") == found
