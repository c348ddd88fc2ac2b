"""`foul run`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from foul.cli.arguments import Quiet, Requests, Seeds, Store, StudyOverrides, names, split_config
from foul.cli.output import JSON_OPTION, percent, print_json, print_table
from foul.cli.remote import handed_over, shown
from foul.config import load_config
from foul.errors import UserError
from foul.experiments.store import ResultStore
from foul.experiments.study import (
    METHODS,
    Failure,
    SomeFailed,
    Study,
    check_methods,
    run_study,
)
from foul.report.aggregate import stat
from foul.report.metrics import COUNT, GIGA, MEGA, PERCENT, Unit
from foul.report.tables import cell
from foul.report.write import write_report


def run(
    config: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, or the name of a shipped configuration (`foul config list`)."
        ),
    ] = None,
    overrides: StudyOverrides = None,
    forget: Requests = None,
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Methods of `foul methods`, with commas.")
    ] = ",".join(METHODS),
    seeds: Seeds = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to; default runs/CONFIG.")
    ] = None,
    store: Store = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Learn, erase, retrain for reference, and compare: the whole story in one command.

    Without --forget the last domain is forgotten. Stopped at any moment, the same command goes on
    where it was.

    Examples:

      foul run digits --out runs/story

      foul run pacs data.path=PACS.zip --forget domain:sketch --forget client:photo-0 --seeds 3

      foul run digits foul:rounds=5 --methods foul,retrain
    """
    config, texts = split_config(config, overrides)
    name = config or "digits"
    settings, options = split_options(texts)
    chosen = load_config(name, settings)
    place = out or Path("runs") / Path(name).stem
    wanted = names(methods) or []
    perform(Study(chosen, forget or (), wanted, seeds, options), place, store, quiet, as_json)


def perform(study: Study, place: Path, store: Path | None, quiet: bool, as_json: bool) -> None:
    """Run a study, write its report, and show its results; what failed comes last.

    Raises:
        UserError: it cannot be run as asked.
        typer.Exit: with code 1 at the end, if some methods failed.
    """
    check_methods(study.methods, study.options)
    _refuse_idle_options(study)
    if handed_over(study.config, place, quiet):
        return
    failures: Sequence[Failure] = ()
    with shown(quiet) as display:
        known = ResultStore(store) if store else None
        try:
            results = run_study(study, place, display, known, shlex.join(sys.argv))
        except SomeFailed as error:
            results, failures = error.results, error.failures
    if results:
        write_report([place], place / "report.html")
    if as_json:
        print_json([*results, *(failure.to_dict() for failure in failures)])
    elif results:
        for request in dict.fromkeys(result["forget"] for result in results):
            show_comparison(place, [r for r in results if r["forget"] == request])
        typer.echo(f"Report: {place / 'report.html'}  Figures: {place / 'results.json'}")
    end_if_failed(failures, as_json)


def end_if_failed(failures: Sequence[Failure], as_json: bool) -> None:
    """List what failed, unless JSON has told of it, and end with exit code 1.

    Raises:
        typer.Exit: something failed.
    """
    if not failures:
        return
    if not as_json:
        rows = [[f.method, f.forget, f.seed, f.failed] for f in failures]
        print_table("Failed", ["method", "request", "seed", "why"], rows)
    raise typer.Exit(1)


_COLUMNS: dict[str, tuple[str, Unit]] = {
    "FA %": ("fa", PERCENT),
    "RA %": ("ra", PERCENT),
    "TA %": ("ta", PERCENT),
    "MIA": ("mia_auc", Unit(digits=3)),
    "rounds": ("rounds", COUNT),
    "MB": ("bytes", MEGA),
    "GFLOP": ("flops", GIGA),
    "s": ("seconds", Unit(digits=0)),
    "off by": ("distance", Unit()),
}
"""Heads, keys of results, units."""
_STEADY = ("bytes", "flops", "seconds")
"""Costs hardly move with the seed: their spread is left out."""


def show_comparison(place: Path, results: list[dict[str, Any]]) -> None:
    """The methods that served one request, with their distance from Retrain; over several seeds
    mean and standard deviation."""
    seeds = len({r["seed"] for r in results})
    rows = []
    for method in dict.fromkeys(r["method"] for r in results):
        own = [r for r in results if r["method"] == method]
        count = [len(own)] if seeds > 1 else []
        cells = [_cell(own, *column) for column in _COLUMNS.values()]
        rows.append(["learned" if method == "none" else method, *count, *cells])
    columns = ["method", *(["n"] if seeds > 1 else []), *_COLUMNS]
    print_table(f"{place}: forgetting {results[0]['forget']}", columns, rows)
    spread = f" Mean \u00b1 standard deviation over {seeds} seeds." if seeds > 1 else ""
    typer.echo(
        "MIA: AUC of a loss threshold. s: seconds of client work. off by: mean of |FA - Retrain|,"
        " the shortfalls of RA and TA below Retrain, and |MIA accuracy - Retrain|, in points."
        + spread
    )
    for r in results:
        if r["method"].startswith("foul") and seeds == 1:
            typer.echo(f"{r['method']}: {r['stopped']}.{_best(r)}")


def _cell(results: list[dict[str, Any]], key: str, unit: Unit) -> str:
    found = cell(stat(result.get(key) for result in results), unit)
    return found.text if key in _STEADY else f"{found.text} {found.spread}".rstrip()


def _best(result: dict[str, Any]) -> str:
    best = result.get("best_stop")
    if not best:
        return ""
    return f" The best stop would have been round {best['round']} with FA {percent(best['fa'])}."


def _refuse_idle_options(study: Study) -> None:
    """Options of a method that does not run are a mistake that nobody would notice."""
    for name in study.options:
        if name not in study.methods:
            raise UserError(
                f"There are options for '{name}', which this run does not use",
                f"It runs {', '.join(study.methods)}; choose with --methods.",
            )


def split_options(texts: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Settings of the configuration, and options of methods by the method's name."""
    settings: list[str] = []
    options: dict[str, list[str]] = {}
    for text in texts:
        method, separator, _ = text.partition("=")[0].partition(":")
        if separator:
            options.setdefault(method, []).append(text.removeprefix(f"{method}:"))
        else:
            settings.append(text)
    return settings, options
