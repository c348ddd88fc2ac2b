from typing import Any

import pytest
import torch
from matplotlib.axes import Axes

from foul.report.charts.style import GREY, INK
from foul.report.collect import Pictures
from foul.report.gallery import MANY_CLIENTS, Chart, forgotten, picture_charts, request_charts

from .drawn import bars, dots, names, path, paths
from .reported import REQUEST, THREE, entries, evaluation, result, rows

EAST = frozenset({"east-0", "east-1"})
ALL = {method: evaluation(0.5) for method in ("none", "foul", "retrain")}


def charts(*results: dict[str, Any], **more: Any) -> dict[str, Chart]:
    return {chart.name: chart for chart in request_charts(rows(*results, **more), EAST)}


def axis(chart: Chart) -> Axes:
    return chart.figure.axes[0]


def test_everything_that_was_measured_has_a_chart() -> None:
    told = [
        r | {"curve": [{"round": 1, "fa": 0.5, "ra": 0.5, "angle_retain": 0.5, "angle_forget": -1}]}
        for r in THREE
    ]
    found = charts(*told, evaluations=ALL)
    assert list(found) == [
        "fa",
        "ra",
        "angle-retain",
        "angle-forget",
        "cost-bytes",
        "cost-flops",
        "roc",
        "relearn",
        "clients-foul",
    ]


def test_what_was_not_measured_has_none() -> None:
    assert charts({"method": "foul", "forget": REQUEST}) == {}
    assert list(charts(*THREE)) == ["fa", "ra", "cost-bytes", "cost-flops"]
    assert charts(result("foul", curve=None)) == {}


def test_rounds_without_an_angle_are_skipped() -> None:
    curve = [{"round": 0}, {"round": 1, "angle_retain": None}, {"round": 2, "angle_retain": 0.25}]
    found = axis(charts(result("foul", curve=curve))["angle-retain"])
    assert paths(found)[0] == ([2], [0.25])


def test_every_seed_is_a_line_and_the_method_is_named_once() -> None:
    found = charts(result("foul", 0.5, seed=0), result("foul", 0.7, seed=1))["fa"]
    assert [heights for _, heights in paths(axis(found))] == [[90, 50], [90, 70]]
    assert names(found.figure) == ["foul"]


def test_costs_against_the_gap_of_fa() -> None:
    found = charts(*THREE)["cost-bytes"]
    assert dots(axis(found)) == [[pytest.approx([25, 10])], [pytest.approx([100, 0])]]
    # The learned model costs nothing: a level, not a dot.
    assert paths(axis(found))[0][1] == pytest.approx([30, 30])
    assert names(found.figure) == ["foul", "retrain", "learned (no cost)"]


def test_the_roc_is_of_the_attack_that_sees_most_in_the_learned_model() -> None:
    weak, strong = evaluation(0.5, auc=0.6), evaluation(0.5, auc=0.9)
    strong["attacks"]["modified_entropy"] = {"auc": 0.95, "roc": [[0.1, 0.9], [1, 1]]}
    found = charts(*THREE, evaluations={"none": strong, "foul": weak})["roc"]
    assert axis(found).get_title() == "attack: modified entropy"
    assert names(found.figure) == ["guessing", "learned"]


def test_bars_of_clients_with_what_was_before_and_what_should_be() -> None:
    told = {"none": evaluation(0.9), "foul": evaluation(0.5), "retrain": evaluation(0.6)}
    found = axis(charts(*THREE, evaluations=told)["clients-foul"])
    assert [tick.get_text() for tick in found.get_yticklabels()] == [
        *("east-0", "east-1"),
        *("north-0", "north-1"),
    ]
    assert [bar.get_width() for bar in bars(found)] == [50] * 4
    assert [bar.get_hatch() for bar in bars(found)] == ["////", "////", "", ""]
    marks = {line.get_color(): set(path(line)[0]) for line in found.lines}
    assert marks == {GREY: {90}, INK: {60}}


def test_with_many_clients_bars_are_of_domains() -> None:
    score = {"train": {"accuracy": 0.5}}
    told = {
        "clients": {f"c-{n}": score for n in range(MANY_CLIENTS + 1)},
        "domains": {"east": score, "north": score},
    }
    found = charts(result("foul"), evaluations={"foul": {"accuracy": told}})["clients-foul"]
    assert len(axis(found).patches) == 2


def test_whom_a_request_is_about() -> None:
    told = entries(result("foul"))
    assert forgotten("domain:east", told) == {"east", "east-0", "east-1"}
    assert forgotten("client:east-0, north-1", told) == {"east-0", "north-1"}
    assert forgotten("domain:east", []) == {"east"}


def test_pictures_that_are_there() -> None:
    maps = {"k_map": torch.eye(2), "domain": torch.tensor([0, 1])}
    found = list(picture_charts(Pictures(maps, {"domains": ["a", "b"]})))
    assert [chart.name for chart in found] == ["k-by-domain"]
    assert names(found[0].figure) == ["a", "b"]
    assert list(picture_charts(Pictures({}, {}))) == []
