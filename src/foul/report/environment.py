"""Templates of pages: escaped, strict about names, with the report's style at hand."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def page_environment(*packages: str) -> Environment:
    """Templates of these packages, and those of the report behind them."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "foul.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
