"""The report in a real browser: both schemes, a desk and a phone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foul.report.write import write_report

from .browser import Browser, browsing, installed
from .reported import CLIENTS, evaluation, result, write_pictures, write_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason="needs chromium or google-chrome on the PATH"),
]

TEXTS = "[...document.querySelectorAll('svg text')].map(box)"
BOX = """function box(text) {
    const own = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
    const out = [all.left - own.left, own.right - all.right, all.top - own.top,
                 own.bottom - all.bottom];
    return {out: Math.max(...out), size: Math.min(own.width, own.height), text: text.textContent};
}"""
"""How far a chart's text is outside of it, and its size, in pixels."""

METHODS = ("none", "foul-paper", "foul", "continue", "retrain")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five methods, three seeds, names that are long and strange."""
    folder = tmp_path_factory.mktemp("report")
    long = "a-client-with-a-name-that-nobody-would-want-to-read-" * 3
    told = evaluation(0.5)
    clients = (*CLIENTS, long, "<b>&</b>")
    told["accuracy"]["clients"] = {name: {"train": {"accuracy": 0.5}} for name in clients}
    for seed in range(3):
        run = write_run(
            folder / f"seed-{seed}",
            [result(m, 0.5 + seed / 50, stopped=long) for m in METHODS],
            seed=seed,
            evaluations=dict.fromkeys(METHODS, told),
        )
        write_pictures(run)
    return write_report([folder], folder / "report.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = installed()
    assert program is not None
    with browsing(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_reads_well(
    page: Path, browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    browser.open(page, width, scheme)
    assert browser.complaints == []
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value("document.querySelectorAll('svg').length") == 14
    browser.value(f"{BOX}; 0")
    assert browser.value(f"{TEXTS}.filter(found => found.out > 4)") == []
    assert browser.value(f"{TEXTS}.filter(found => found.text.length > 2 && found.size < 9)") == []
    browser.screenshot(tmp_path / "page.png")
    with PIL.Image.open(tmp_path / "page.png") as image:
        pixels = np.asarray(image.convert("L"), dtype=float)
    assert pixels.shape[1] == width
    # The paper is what there is most of; text and lines are there too.
    paper = np.median(pixels)
    assert paper > 240 if scheme == "light" else paper < 40
    assert np.ptp(pixels) > 180
