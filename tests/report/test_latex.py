import re

import pytest

from foul.report.latex import escaped, to_latex
from foul.report.tables import comparison

from .reported import THREE, result, rows


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("{$#}", r"\{\$\#\}"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("1 ± 2", r"1 $\pm$ 2"),
    ],
)
def test_every_special_character_is_escaped(text: str, latex: str) -> None:
    assert escaped(text) == latex


def test_the_comparison_as_booktabs() -> None:
    table = comparison(rows(*THREE, result("my_method", 0.9)))
    latex = to_latex({"domain:art_painting": table})
    assert r"\caption{Forgetting domain:art\_painting." in latex
    body = latex[latex.index(r"\midrule") : latex.index(r"\bottomrule")]
    lines = body.splitlines()[1:]
    assert [line.split(" & ")[0] for line in lines] == ["learned", "foul", r"my\_method", "retrain"]
    assert r"\textbf{50.0} ($-$10.0)" in lines[1]
    assert "$\\pm$" not in latex
    count = len(table.columns)
    assert all(len(re.findall(r"(?<!\\)&", line)) == count - 1 for line in lines)
    assert rf"\begin{{tabular}}{{l{'r' * (count - 1)}}}" in latex


def test_seeds_have_a_deviation() -> None:
    table = comparison(rows(result("foul", 0.5, seed=0), result("foul", 0.7, seed=1)))
    assert r"60.0 $\pm$ 14.1" in to_latex({"a": table})
