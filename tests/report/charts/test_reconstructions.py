import torch

from foul.report.charts.reconstructions import SHOWN, reconstructions
from report.drawn import pixels


def test_rows_of_sources_and_columns_of_images() -> None:
    original = torch.full((3, 14, 14, 3), 10, dtype=torch.uint8)
    both = torch.full((3, 14, 14, 3), 200, dtype=torch.uint8)
    figure = reconstructions({"both": both, "original": original})
    assert figure is not None
    axis = figure.axes[0]
    grid = pixels(axis)
    assert grid.shape == (2 * 15, 3 * 15, 4)
    assert grid[0, 0].tolist() == [10, 10, 10, 255]
    assert grid[15, 30].tolist() == [200, 200, 200, 255]
    # Between images the page shows through.
    assert grid[14, 0].tolist() == [0, 0, 0, 0]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["original", "z_K, z_V"]


def test_not_more_than_can_be_told_apart() -> None:
    figure = reconstructions({"original": torch.zeros(SHOWN + 5, 4, 4, 3, dtype=torch.uint8)})
    assert figure is not None
    assert pixels(figure.axes[0]).shape[1] == SHOWN * 5


def test_no_images_no_figure() -> None:
    assert reconstructions({}) is None
    assert reconstructions({"original": torch.zeros(0, 4, 4, 3, dtype=torch.uint8)}) is None
