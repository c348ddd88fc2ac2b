import os
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from matplotlib.axes import Axes

from foul.errors import MachineError
from foul.report.charts.style import COLOURS, INK
from foul.report.curves import plot_curves

NOTHING_TO_NAME = "matplotlib warns about a legend without entries"


def result(method: str, *fractions: float) -> dict[str, Any]:
    """A method whose FA falls along these fractions while its RA rises."""
    curve = [{"round": n, "fa": f, "ra": 1 - f} for n, f in enumerate(fractions)]
    return {"method": method, "fa": fractions[-1], "ra": 1 - fractions[-1], "curve": curve}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[float], list[float]]]:
    """What was drawn: label (`-` for a level line), places and heights."""
    lines: list[tuple[str, list[float], list[float]]] = []
    plot, level = Axes.plot, Axes.axhline

    def noted(axis: Axes, x: list[float], y: list[float], **style: Any) -> object:
        lines.append((style["label"], x, y))
        return plot(axis, x, y, **style)

    def noted_level(axis: Axes, y: float, **style: Any) -> object:
        lines.append(("-", [], [y]))
        return level(axis, y, **style)

    monkeypatch.setattr(Axes, "plot", noted)
    monkeypatch.setattr(Axes, "axhline", noted_level)
    return lines


def pixels(path: Path) -> Any:
    """The picture; opening it fails unless it is a whole PNG."""
    with PIL.Image.open(path) as image:
        assert image.format == "PNG"
        image.load()
        return np.asarray(image.convert("RGB"))


def has_colour(image: Any, colour: str) -> bool:
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return bool((image == wanted).all(-1).any())


def test_a_picture_of_every_curve(
    tmp_path: Path, drawn: list[tuple[str, list[float], list[float]]]
) -> None:
    path = tmp_path / "curves.png"
    plot_curves([result("foul", 1.0, 0.5), result("retrain", 0.25, 0.75)], path, "digits")
    assert [(label, x, y) for label, x, y in drawn] == [
        ("foul", [0, 1], [100, 50]),
        ("retrain", [0, 1], [25, 75]),
        ("-", [], [75]),
        ("foul", [0, 1], [0, 50]),
        ("retrain", [0, 1], [75, 25]),
        ("-", [], [25]),
    ]
    image = pixels(path)
    assert has_colour(image, COLOURS[0])
    assert has_colour(image, INK)
    assert not has_colour(image, COLOURS[1])


def test_more_methods_than_colours(tmp_path: Path) -> None:
    methods = [result(f"m{n}", n / 10, n / 10) for n in range(len(COLOURS) + 2)]
    plot_curves(methods, tmp_path / "a.png", "many")
    image = pixels(tmp_path / "a.png")
    assert all(has_colour(image, colour) for colour in COLOURS)


def test_results_without_a_curve_are_left_out(
    tmp_path: Path, drawn: list[tuple[str, list[float], list[float]]]
) -> None:
    plain: list[dict[str, Any]] = [
        {"method": "none", "fa": 1.0, "ra": 1.0},
        {"method": "continue", "curve": []},
    ]
    plot_curves([*plain, result("foul", 1.0, 0.5)], tmp_path / "a.png", "x")
    assert {label for label, _, _ in drawn} == {"foul"}
    pixels(tmp_path / "a.png")


def test_retrain_alone(tmp_path: Path, drawn: list[tuple[str, list[float], list[float]]]) -> None:
    plot_curves([result("retrain", 0.5)], tmp_path / "a.png", "x")
    assert {label for label, _, _ in drawn} == {"retrain", "-"}
    pixels(tmp_path / "a.png")


@pytest.mark.parametrize("results", [[], [{"method": "retrain", "fa": 0.5, "ra": 0.5}]])
def test_nothing_but_a_level_line(tmp_path: Path, results: list[dict[str, Any]]) -> None:
    plot_curves(results, tmp_path / "a.png", "x")
    pixels(tmp_path / "a.png")


def test_the_old_picture_stays_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "curves.png"
    plot_curves([result("foul", 1.0)], path, "old")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(MachineError, match=r"curves\.png"):
            plot_curves([result("foul", 0.5)], path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["curves.png"]
    assert path.read_bytes() == before
    plot_curves([result("foul", 0.5)], path, "new")
    assert path.read_bytes() != before
