import numpy as np
import pytest

from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.paper import ROWS
from foul.experiments.reproduce.rows import rows_of
from foul.experiments.reproduce.tradeoff import picture, table

from .made_up import REQUEST, done, texts, trial

TRIAL = trial(variants("cpu", ("learned", "Retrain", "FedRecovery", "FOUL (1)+(2)")))
FIGURES = {
    "learned": {"fa": 0.9, "bytes": 0},
    "Retrain": {"fa": 0.5, "bytes": 100e6},
    "FedRecovery": {"fa": 0.8, "bytes": 0},
    "FOUL (1)+(2)": {"fa": 0.55, "bytes": 10e6},
}


def test_a_point_for_each_method_and_a_place_for_those_without_traffic() -> None:
    figure = picture(rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES)]), "PACS")
    fa, ra = figure.axes
    places = [tuple(np.asarray(points.get_offsets())[0]) for points in fa.collections]
    assert places == [(100, 50), (2.5, 80), pytest.approx((10, 55))]
    assert [text.get_text() for text in fa.get_xticklabels()] == ["0", "10", "100"]
    assert {np.asarray(line.get_ydata())[0] for line in fa.get_lines()} == {50.0, 90.0}
    assert len(ra.collections) == 3


def test_the_papers_costs_and_accuracies_stand_beside_ours() -> None:
    lines = texts(table(rows_of(TRIAL, REQUEST, [done(TRIAL, FIGURES)]), ROWS["pacs"]))
    assert lines[-1] == ["FOUL (1)+(2)", "10.0", "55.0", "80.0", "16.02", "70.97", "92.33"]
    assert lines[0][-3:] == ["-", "-", "-"]
