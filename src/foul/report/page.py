"""The report as one page of HTML that needs nothing but itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from foul.config.load import config_to_toml
from foul.report import wording
from foul.report.absences import absences
from foul.report.charts.files import to_svg
from foul.report.collect import Run
from foul.report.environment import page_environment
from foul.report.gallery import Chart
from foul.report.officer import Account
from foul.report.tables import Table
from foul.version import __version__


@dataclass(frozen=True)
class Section:
    """What the page says about one request."""

    request: str
    anchor: str
    sentences: Sequence[str]
    missing: str
    """The command that would make Retrain, if it is missing."""
    seeds: Sequence[int]
    comparison: Table
    costs: Table
    attacks: Table
    knowledge: Table
    charts: Sequence[Chart]
    account: Account


def render(sections: Sequence[Section], pictures: Sequence[Chart], runs: Sequence[Run]) -> str:
    """The whole page."""
    environment = page_environment()
    environment.globals["svg"] = _svg
    return environment.get_template("report.html.j2").render(
        sections=sections,
        pictures=pictures,
        runs=[_made(run) for run in runs],
        data=runs[0].config.data.name,
        facts=_counts(runs[0].facts),
        wording=wording,
        version=__version__,
    )


def _svg(chart: Chart, anchor: str) -> Markup:
    return to_svg(chart.figure, f"{anchor}-{chart.name}", chart.caption)


def _made(run: Run) -> dict[str, Any]:
    """How a run was made."""
    return {
        "path": str(run.path),
        "seed": run.config.seed,
        "command": run.facts.get("command") or "-",
        "version": run.facts.get("version", "-"),
        "config": config_to_toml(run.config),
        "absences": absences(run),
    }


def _counts(facts: Mapping[str, Any]) -> dict[str, int]:
    clients = facts.get("clients", [])
    return {
        "clients": len(clients),
        "domains": len({client.get("domain") for client in clients}),
        "classes": len(facts.get("classes", [])),
    }
