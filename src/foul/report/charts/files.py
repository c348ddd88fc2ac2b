"""A chart as text inside a page, and as a picture in a file."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path

from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.figure import Figure

from foul.names import slug
from foul.report.charts.style import INK
from foul.runs.atomic import replacing

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_PIXELS_PER_INCH = 144


def to_svg(figure: Figure, name: str, label: str) -> Markup:
    """The chart as an element for a page: as wide as its place, in the page's colour and letters.

    Args:
        figure: the chart.
        name: goes before every id, so that no two charts of a page share one.
        label: what the chart shows, for those who hear the page.
    """
    content, name = StringIO(), slug(name)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), _any_letters():
        figure.savefig(
            content,
            format="svg",
            transparent=True,
            dpi=_PIXELS_PER_INCH,
            metadata=_NO_METADATA,
        )
    return Markup(_embedded(content.getvalue(), name, label))


def _embedded(svg: str, name: str, label: str) -> str:
    head, _, body = svg.partition("<svg")[2].partition(">")
    box = head.partition('viewBox="')[2].partition('"')[0]
    body = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = body.replace("xlink:href", "href").replace(INK, "currentColor")
    # Inside a page, a style element of one chart would speak for all of it.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--letters)", body)
    space = 'xmlns="http://www.w3.org/2000/svg"'
    told = f'role="img" aria-label="{escape(label)}"'
    return f'<svg {space} viewBox="{box}" {told}>{body.strip()}'


def to_png(figure: Figure, path: Path) -> None:
    """The chart as a file on white, whole or not at all.

    Raises:
        MachineError: it cannot be written; what was at `path` is as it was.
    """
    content = BytesIO()
    with _any_letters():
        figure.savefig(content, dpi=_PIXELS_PER_INCH, format="png", facecolor="white")
    with replacing(path) as temporary:
        temporary.write_bytes(content.getvalue())


@contextmanager
def _any_letters() -> Iterator[None]:
    """Names may be in letters that the font here lacks; a browser finds them elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield
