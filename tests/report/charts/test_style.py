from foul.report.charts.style import COLOURS, GREY, INK, looks, short


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_show_on_white_and_on_black() -> None:
    dark = luminance("#1a1e23")
    for colour in (*COLOURS, GREY):
        assert (1 + 0.05) / (luminance(colour) + 0.05) > 2
        assert (luminance(colour) + 0.05) / (dark + 0.05) > 2


def test_references_look_the_same_everywhere_and_others_all_differ() -> None:
    names = [f"m{n}" for n in range(2 * len(COLOURS) + 1)]
    found = looks([("none (a)", "none"), *((n, n) for n in names), ("retrain", "retrain")])
    assert found["none (a)"].colour == GREY
    assert found["retrain"].colour == INK
    assert len({found[name] for name in names}) == len(names)


def test_a_long_name_leaves_room() -> None:
    assert short("plain-0") == "plain-0"
    assert short("x" * 100, 10) == "x" * 9 + "…"
