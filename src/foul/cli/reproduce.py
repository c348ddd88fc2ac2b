"""`foul reproduce`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from foul.cli.arguments import Quiet, Requests, Seeds
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.cli.progress import ProgressDisplay
from foul.cli.run import end_if_failed
from foul.config.load import parse_override
from foul.experiments.reproduce.catalogue import EXPERIMENTS, experiment
from foul.experiments.reproduce.earlier import read_earlier
from foul.experiments.reproduce.perform import spell
from foul.experiments.reproduce.plan import Asked, Experiment, Shown
from foul.experiments.reproduce.reproduce import reproduce as run_experiment
from foul.experiments.reproduce.reproduce import sources_for
from foul.experiments.reproduce.sizes import parse_size
from foul.experiments.reproduce.timing import forecast, forecast_table
from foul.experiments.reproduce.write import text_of

PLACE = Path("runs/reproduce")


def reproduce(
    name: Annotated[str, typer.Argument(help="A table or figure; `list` shows all.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]... [KEY=VALUE]...",
            help="Folders or zips of images (ROOT/DOMAIN/CLASS/*); settings to change.",
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            help="`paper`: the authors' setting, for a GPU. `cpu`: the same for two cores. "
            "`smoke`: seconds, on made images."
        ),
    ] = "cpu",
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="What the folders are (`foul data list`), if they should not be recognised; "
            "without folders, an embedded set.",
        ),
    ] = None,
    forget: Requests = None,
    seeds: Seeds = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to; default runs/reproduce/NAME.")
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            help="Where learned models and results are kept, shared by all experiments; default "
            "OUT/runs with --out, else runs/reproduce/runs."
        ),
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write the page and its pictures here.")
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            help="The JSON file of an earlier command, from any machine: results of the very same "
            "settings are taken from it, and the page says so. May be given several times."
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Time two rounds, tell how long it will take, stop.")
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Run a table or figure of the paper, and print its figures beside ours.

    The data set is recognised by its domains and classes; any other folder will do, without the
    paper's column. The last domain is forgotten (as the authors do on PACS: sketch), unless
    --forget says otherwise; `--forget all` takes each in turn. Stopped, the same command goes on
    where it was; what another experiment has learned is used again.

    Examples:

      foul reproduce list

      foul reproduce table-main PACS.zip --size cpu --estimate

      foul reproduce table-main PACS.zip --forget all --seeds 3

      foul reproduce table-main PACS.zip --seeds 3 --known docs/results/table-main-pacs.json

      foul reproduce fig-capacity Digits28.zip --data digits28
    """
    if name == "list":
        _list(as_json)
        return
    chosen, wanted = experiment(name), parse_size(size)
    earlier, texts = read_earlier(known or []), data or []
    paths = [text for text in texts if "=" not in text]
    overrides = dict(parse_override(text) for text in texts if "=" in text)
    keep = runs or (out / "runs" if out else PLACE / "runs")
    asked = Asked(
        sources_for(chosen, paths, names or [], wanted, keep), wanted, forget or (), overrides
    )
    with ProgressDisplay(quiet) as display:
        if estimate:
            _estimate(chosen, asked, seeds, display, as_json)
            return
        command = _command(chosen, asked, texts, names or [], seeds, known or [])
        place = out or PLACE / chosen.name
        found = run_experiment(chosen, asked, seeds, place, keep, command, docs, display, earlier)
    if as_json:
        print_json(found.told)
    else:
        for shown in found.outcome.tables:
            _show(shown)
        for note in found.outcome.notes:
            typer.echo(f"- {note}")
        typer.echo(f"Written: {', '.join(str(file) for file in found.files)}")
    end_if_failed(found.failures, as_json)


def _show(shown: Shown) -> None:
    rows = [[text_of(cell) for cell in line.cells] for line in shown.table.lines]
    print_table(shown.caption, [column.name for column in shown.table.columns], rows)


def _list(as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": e.name,
                    "what": e.what,
                    "where": e.where,
                    "sets": e.sets,
                    "minutes": e.minutes,
                    "budget": e.budget,
                }
                for e in EXPERIMENTS.values()
            ]
        )
        return
    print_table(
        "Tables and figures of the paper; minutes at --size cpu, on PACS where data is needed",
        ["name", "what", "in the paper", "data sets", "minutes"],
        [[e.name, e.what, e.where, ", ".join(e.sets), e.minutes] for e in EXPERIMENTS.values()],
    )


def _estimate(
    chosen: Experiment, asked: Asked, seeds: int, display: ProgressDisplay, as_json: bool
) -> None:
    found = forecast(chosen.trials(asked), display)
    seconds = seeds * sum(60 * f.minutes for f in found)
    if as_json:
        print_json({"minutes": seconds / 60, "trials": [f.to_dict() for f in found]})
        return
    _show(Shown(f"{chosen.name} at size {asked.size}", forecast_table(found, seeds)))
    typer.echo(
        f"About {spell(seconds)}, extrapolated from two rounds of a few clients; less, if another "
        f"experiment has learned the same models. {chosen.budget}"
    )


def _command(
    chosen: Experiment,
    asked: Asked,
    texts: Sequence[str],
    names: Sequence[str],
    seeds: int,
    known: Sequence[Path],
) -> str:
    """The command as somebody else would type it: without this machine's paths."""
    words = ["foul", "reproduce", chosen.name]
    words += [text if "=" in text else Path(text).name for text in texts]
    words += [word for name in names for word in ("--data", name)]
    words += ["--size", asked.size]
    words += [word for request in asked.forget for word in ("--forget", request)]
    words += ["--seeds", str(seeds)] if seeds > 1 else []
    words += [word for file in known for word in ("--known", file.name)]
    return shlex.join(words)
