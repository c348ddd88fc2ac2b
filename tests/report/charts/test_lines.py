from foul.report.charts.lines import Line, Panel, line_chart
from foul.report.charts.style import Look
from report.drawn import names, paths

BLUE = Look("#0072B2", "s")


def test_lines_and_levels_are_drawn_as_given() -> None:
    figure = line_chart(
        [Line("a", BLUE, [0, 2], [5, 7]), Line("a", BLUE, [0, 1], [6, 8])],
        Panel("height", limits=(0, 9), levels=[4]),
    )
    axis = figure.axes[0]
    assert paths(axis) == [([0, 2], [5, 7]), ([0, 1], [6, 8]), ([0, 1], [4, 4])]
    assert [line.get_marker() for line in axis.lines[:2]] == ["s", "s"]
    assert axis.get_ylabel() == "height"
    assert axis.get_ylim() == (0, 9)
    assert names(figure) == ["a"]


def test_no_lines_no_legend() -> None:
    assert line_chart([], Panel("height", limits=None)).legends == []
