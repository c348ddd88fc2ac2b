import re
import xml.etree.ElementTree as xml
from pathlib import Path

import PIL.Image
from matplotlib.figure import Figure

from foul.report.charts.files import to_png, to_svg
from foul.report.charts.lines import Line, Panel, line_chart
from foul.report.charts.style import INK, Look


def chart(label: str = "foul") -> Figure:
    return line_chart([Line(label, Look("#0072B2", "o"), [0, 1], [10, 90])], Panel("height"))


def test_text_stays_text_and_ink_is_the_pages() -> None:
    svg = str(to_svg(chart("müde & <b>"), "a", "what it shows"))
    root = xml.fromstring(svg)
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"müde & <b>", "height", "round"} <= texts
    assert "currentColor" in svg
    assert INK not in svg
    assert "var(--letters)" in svg
    assert "DejaVu" not in svg
    assert "<style" not in svg


def test_the_element_scales_and_is_explained() -> None:
    root = xml.fromstring(str(to_svg(chart(), "a", 'says "hello" <now>')))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'says "hello" <now>'
    assert root.get("viewBox", "").startswith("0 0 324")
    assert "width" not in root.attrib


def test_nothing_is_painted_behind_the_chart() -> None:
    svg = str(to_svg(chart(), "a", ""))
    background = re.search(r'<g id="a-patch_1">.*?</g>', svg, re.DOTALL)
    assert background is None or "fill: none" in background.group()
    assert "#ffffff" not in svg.lower()


def test_charts_of_other_names_share_no_id() -> None:
    one, two = (
        set(re.findall(r'\sid="([^"]*)"', str(to_svg(chart(), name, "")))) for name in ("a", "b")
    )
    assert one
    assert not one & two


def test_references_follow_the_ids() -> None:
    svg = str(to_svg(chart(), "1-a <x>", ""))
    ids = set(re.findall(r'\sid="([^"]*)"', svg))
    used = set(re.findall(r'(?:url\(|href=")#([^)"]*)', svg))
    assert used
    assert used <= ids
    assert all(name.startswith("1-a-x-") for name in ids)


def test_a_picture_on_white(tmp_path: Path) -> None:
    to_png(chart(), tmp_path / "a.png")
    with PIL.Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG"
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
