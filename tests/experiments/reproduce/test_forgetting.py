from typing import Any

import numpy as np

from foul.experiments.reproduce.forgetting import picture, rounds_to_end, table, trials
from foul.experiments.reproduce.plan import Asked
from foul.experiments.reproduce.rows import rows_of
from foul.unlearning.methods import make_method

from .made_up import PACS, REQUEST, done, texts, trial

ROWS = trials(Asked([PACS], "cpu"))[0].variants
TRIAL = trial(ROWS)


def curve(*accuracies: float) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = [
        {"round": n, "fa": fa, "ra": 0.8, "ta": 0.7, "angle_retain": 0.5, "angle_forget": -0.2}
        for n, fa in enumerate(accuracies)
    ]
    # Before the first round there is no step.
    points[0] |= {"angle_retain": None, "angle_forget": None}
    return points


def found() -> list[Any]:
    figures = {
        "FOUL (1)+(2)": {"fa": 0.5, "curve": curve(0.9, 0.6, 0.505, 0.5), "learned_fa": 0.9},
        "Retrain, with reset": {"fa": 0.5, "curve": curve(0.1, 0.5), "learned_fa": 0.9},
    }
    return [done(TRIAL, figures, seed) for seed in (0, 1)]


def test_without_reset_the_rate_of_learning_goes_on() -> None:
    by_method = {row.method: row for row in ROWS}
    assert list(by_method) == ["foul", "foul-paper", "retrain", "continue"]
    options = make_method("continue", by_method["continue"].options).options
    assert (options.rounds, options.rate) == (20, 1)


def test_time_to_forget_beside_the_papers() -> None:
    rows = rows_of(TRIAL, REQUEST, found())
    first, second = texts(table(rows, paper=True))
    # From 90 to 50.5 in two rounds.
    assert first[:5] == ["FOUL (1)+(2)", "19.75", "0.32", "2", "50"]
    assert first[5:] == ["2", "4", "50.0", "80.0"]
    assert second[1:5] == ["40.00", "0.13", "1", "75"]
    assert len(texts(table(rows, paper=False))[0]) == len(first) - 2


def test_the_end_is_reached_in_the_first_round_within_a_point() -> None:
    rows = rows_of(TRIAL, REQUEST, found())
    end = rounds_to_end(rows[0])
    assert end is not None
    assert (end.mean, end.n) == (2, 2)


def test_a_column_for_each_approach_with_angles_below() -> None:
    figure = picture(rows_of(TRIAL, REQUEST, found()), "PACS")
    above, below = figure.subfigs
    assert [axis.get_title() for axis in above.axes] == ["FOUL (1)+(2)", "Retrain, with reset"]
    # Three lines of two seeds, and Retrain's end.
    assert len(above.axes[0].get_lines()) == 7
    names = [text.get_text() for legend in below.legends for text in legend.get_texts()]
    assert names == ["forget clients", "retain clients"]
    assert np.asarray(below.axes[0].get_lines()[0].get_xdata())[0] == 1
