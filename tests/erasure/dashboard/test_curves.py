from dataclasses import replace
from typing import Any

from foul.erasure.dashboard.curves import job_picture, learning_picture
from foul.erasure.records import Job

JOB = Job(3, (1, 2), ("a",), "foul", (), 0, "2026-11-16T06:00:00Z", {})


def with_curve(points: list[dict[str, Any]]) -> Job:
    return replace(JOB, result={"curve": points})


def test_learning_is_drawn_from_its_own_rounds() -> None:
    records = [
        {"stage": "learning", "round": 1, "validation_accuracy": None},
        {"stage": "learning", "round": 2, "validation_accuracy": 0.5},
        {"stage": "foul", "round": 3, "validation_accuracy": 0.9},
    ]
    picture = learning_picture(records)
    assert picture
    assert picture.svg.startswith("<svg")
    assert picture == learning_picture(records[1:2])
    assert picture != learning_picture([records[1], records[2] | {"stage": "learning"}])
    assert learning_picture(records[:1]) is None


def test_a_job_is_drawn_with_what_was_tracked() -> None:
    picture = job_picture(with_curve([{"round": n, "fa": 0.9, "ra": 0.8} for n in range(3)]))
    assert picture
    assert picture.caption == "Accuracy per round of foul for R-0001, R-0002."
    assert "on the erased clients" in picture.svg
    assert "on the others" in picture.svg


def test_without_tracking_the_rounds_own_figures_are_drawn() -> None:
    points = [{"round": n, "forget_train": 0.9, "validation_accuracy": 0.8} for n in range(3)]
    picture = job_picture(with_curve(points))
    assert picture
    assert "on the others (validation)" in picture.svg


def test_what_was_tracked_hides_the_rounds_own_figures() -> None:
    point = {"round": 1, "fa": 0.9, "ra": 0.8, "forget_train": 0.1, "validation_accuracy": 0.2}
    picture = job_picture(with_curve([point]))
    assert picture
    assert "validation" not in picture.svg


def test_a_job_that_was_not_measured_has_no_picture() -> None:
    assert job_picture(JOB) is None
    assert job_picture(with_curve([{"round": 1, "fa": None}])) is None
