import numpy as np

from foul.report.charts.embedding import NAMED, embedding
from report.drawn import dots, names


def test_every_sample_is_at_its_place_in_its_groups_colour() -> None:
    places = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    axis = embedding(places, [1, 0, 1], ["a", "b"], "z_K").axes[0]
    assert dots(axis) == [[[2, 3]], [[0, 1], [4, 5]]]
    first, second = axis.collections
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert axis.get_title() == "z_K"


def test_more_groups_than_a_legend_holds_have_colours_only() -> None:
    count = NAMED + 1
    groups = [str(n) for n in range(count)]
    figure = embedding([[n, n] for n in range(count)], range(count), groups, "many")
    assert figure.legends == []
    colours = {str(dots.get_facecolor()) for dots in figure.axes[0].collections}
    assert len(colours) == count


def test_no_samples_and_names_in_dollars() -> None:
    figure = embedding([], [], ["$\\frac$", "b"], "empty")
    assert names(figure) == ["$\\frac$", "b"]
