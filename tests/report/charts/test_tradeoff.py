import pytest

from foul.report.charts.style import Look
from foul.report.charts.tradeoff import Point, tradeoff
from report.drawn import dots, paths


def test_costs_are_logarithmic_and_everything_is_inside() -> None:
    look = Look("#0072B2", "o")
    points = [Point("a", look, 0.002, 3.0), Point("b", look, 5.0, 8.0)]
    axis = tradeoff(points, "traffic", learned=6.0).axes[0]
    assert axis.get_xscale() == "log"
    assert dots(axis) == [[pytest.approx([0.2, 3])], [pytest.approx([500, 8])]]
    low, high = axis.get_xlim()
    assert low < 0.2
    assert high > 500
    assert axis.get_ylim()[0] == 0
    assert paths(axis)[0][1] == [6, 6]


def test_without_a_learned_model_there_is_no_level() -> None:
    assert list(tradeoff([], "traffic", None).axes[0].lines) == []
