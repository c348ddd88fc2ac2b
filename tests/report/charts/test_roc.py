import pytest

from foul.report.charts.roc import Roc, roc_chart
from foul.report.charts.style import Look
from report.drawn import paths

LOOK = Look("#0072B2", "o")


def test_both_axes_are_logarithmic_and_zeros_have_no_place() -> None:
    rates = [[0.0, 0.0], [0.0, 0.2], [0.001, 0.3], [0.5, 0.75], [1.0, 1.0]]
    axis = roc_chart([Roc("a", LOOK, rates)], "LiRA").axes[0]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert paths(axis) == [
        ([0.001, 1], [0.001, 1]),
        ([0.001, 0.5, 1], [0.3, 0.75, 1]),
    ]
    assert axis.get_xlim() == pytest.approx((0.001, 1))
    assert axis.get_title() == "attack: LiRA"


@pytest.mark.parametrize("rates", [[], [[0, 0]]])
def test_an_attack_without_points_shows_guessing_alone(rates: list[list[float]]) -> None:
    axis = roc_chart([Roc("a", LOOK, rates)], "x").axes[0]
    assert axis.get_xlim() == pytest.approx((0.01, 1))
