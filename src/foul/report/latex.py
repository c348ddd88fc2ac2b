"""The comparison as a booktabs table for a paper."""

from collections.abc import Mapping

from foul.report.tables import MINUS, Cell, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    MINUS: "$-$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def escaped(text: str) -> str:
    """The text as LaTeX prints it."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def to_latex(tables: Mapping[str, Table]) -> str:
    """One table per request. Needs the package booktabs."""
    return "\n".join(_table(request, table) for request, table in tables.items())


def _table(request: str, table: Table) -> str:
    return captioned(
        f"Forgetting {request}. In parentheses: difference to Retrain, or share of its cost. Bold:"
        " best method.",
        table,
    )


def captioned(caption: str, table: Table) -> str:
    """A table with its caption."""
    head = " & ".join(escaped(column.name) for column in table.columns)
    lines = [" & ".join(map(_cell, line.cells)) + r" \\" for line in table.lines]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _cell(cell: Cell) -> str:
    text = escaped(f"{cell.text} {cell.spread}".strip())
    if cell.best:
        text = rf"\textbf{{{text}}}"
    return f"{text} ({escaped(cell.beside)})" if cell.beside else text
