from pathlib import Path
from typing import Any

import pytest

from foul.experiments.reproduce.coefficients import (
    COEFFICIENTS,
    accuracy_curve,
    converged,
    loss_curve,
    of,
    picture,
    table,
    trials,
)
from foul.experiments.reproduce.plan import Asked, Done

from .made_up import PACS, texts, trial

ONES = dict.fromkeys(COEFFICIENTS, 1.0)


def rounds(*accuracies: float | None) -> list[dict[str, Any]]:
    return [
        {
            "round": number,
            "validation_accuracy": accuracy,
            "losses": dict.fromkeys(COEFFICIENTS.values(), 0.5 / number),
            "seconds": 1.0,
        }
        for number, accuracy in enumerate(accuracies, 1)
    ]


def told(seed: int = 0, **at: float) -> Done:
    return Done(trial((), at=ONES | at), seed, Path("run"), {"rounds": rounds(0.1, 0.6, 0.605)}, [])


def test_one_coefficient_changes_at_a_time() -> None:
    found = trials(Asked([PACS], "cpu"))
    assert len(found) == 9
    assert {sum(v != 1 for v in t.at.values()) for t in found} == {0, 1}
    assert {t.config.learning.patience for t in found} == {0}
    small = next(t for t in found if t.at["alpha_k"] == 0.1)
    assert (small.config.learning.l2u.alpha_k, small.config.learning.l2u.alpha_v) == (0.1, 1.0)


def test_losses_are_told_without_their_coefficient() -> None:
    numbers, losses = loss_curve(told(alpha_k=0.1), "alpha_k")
    assert numbers == [1, 2, 3]
    assert losses == pytest.approx([5, 2.5, 5 / 3])
    assert loss_curve(told(alpha_k=0.1), "alpha_v")[1][0] == 0.5


def test_accuracy_is_of_the_model_that_a_round_started_from() -> None:
    numbers, accuracies = accuracy_curve(told())
    assert numbers == [0, 1, 2]
    assert accuracies == pytest.approx([10, 60, 60.5])
    nobody = Done(trial((), at=ONES), 0, Path("run"), {"rounds": rounds(None, None)}, [])
    assert accuracy_curve(nobody) == ([], [])


def test_convergence_is_how_many_rounds_came_within_a_point_of_the_end() -> None:
    assert converged(rounds(0.1, 0.6, 0.605)) == 1
    assert converged(rounds(0.6, 0.1, 0.6)) == 0
    assert converged(rounds(None)) is None
    assert converged([]) is None


def test_the_model_with_ones_serves_all_sweeps() -> None:
    found = [told(alpha_k=0.5), told(), told(alpha_v=0.1)]
    assert [d.trial.at["alpha_k"] for d in of(found, "alpha_k")] == [0.5, 1.0]
    assert [d.trial.at["alpha_v"] for d in of(found, "alpha_v")] == [0.1, 1.0]
    lines = texts(table(found))
    assert [line[:2] for line in lines] == [
        ["alpha_rec", "1"],
        ["alpha_k", "0.5"],
        ["", "1"],
        ["alpha_v", "0.1"],
        ["", "1"],
        ["alpha_gtc", "1"],
    ]
    assert lines[1][-2:] == ["60.5", "1"]


def test_a_column_for_each_coefficient() -> None:
    figure = picture([told(), told(alpha_k=0.5), told(1), told(1, alpha_k=0.5)], "VLCS")
    axes = [axis for part in figure.subfigs for axis in part.axes]
    assert [axis.get_title() for axis in axes[:4]] == list(COEFFICIENTS)
    # Two values and two seeds; one of each value is named.
    assert [len(axis.get_lines()) for axis in axes[:4]] == [2, 4, 2, 2]
    names = [
        text.get_text() for legend in figure.subfigs[-1].legends for text in legend.get_texts()
    ]
    assert names == ["coefficient 1", "coefficient 0.5"]
