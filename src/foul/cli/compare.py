"""`foul compare`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from foul.cli.arguments import Quiet, Requests, Seeds, Store, StudyOverrides, names, split_config
from foul.cli.output import JSON_OPTION
from foul.cli.run import perform, split_options
from foul.config import load_config
from foul.config.schema import Config
from foul.errors import UserError
from foul.experiments.study import Study
from foul.runs.folder import RunFolder
from foul.unlearning.methods import METHODS


def compare(
    config: Annotated[
        str | None,
        typer.Argument(help="A configuration (`foul config list`), a TOML file or a run folder."),
    ] = None,
    overrides: StudyOverrides = None,
    forget: Requests = None,
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="`all`, or names with commas.")
    ] = "all",
    seeds: Seeds = 1,
    start: Annotated[
        Literal["l2u", "plain"],
        typer.Option(
            help="The model that methods branch from: trained to unlearn, or its plain twin."
        ),
    ] = "l2u",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to; default runs/compare-CONFIG.")
    ] = None,
    store: Store = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Compare all methods: same model, same clients, same accounts, Retrain beside them.

    Every seed learns once; every method branches from that model. Methods with a learning stage of
    their own get it, for as many rounds. One that fails does not stop the others. Stopped, the same
    command goes on where it was.

    Examples:

      foul compare digits --forget domain:textured --seeds 3 --out runs/compare

      foul compare digits --methods not,fedosd,foul,retrain --start plain
    """
    given, texts = split_config(config, overrides)
    name = given or "digits"
    settings, options = split_options(texts)
    chosen = _start(_config(name, settings), start)
    wanted = names(methods) or []
    if methods.strip() == "all":
        wanted = [
            method
            for method, entry in METHODS.items()
            if entry.compared and (start == "l2u" or not entry.method.requirements.l2u)
        ]
    place = out or Path("runs") / f"compare-{Path(name).stem}-{start}"
    study = Study(chosen, forget or (), wanted, seeds, options, keep_going=True)
    perform(study, place, store, quiet, as_json)


def _config(name: str, settings: list[str]) -> Config:
    """A configuration by name, or that of a run folder.

    Raises:
        UserError: somebody was erased from that run, who would take part again.
    """
    if (Path(name) / "run.json").is_file():
        folder = RunFolder.open(Path(name))
        if folder.erased():
            raise UserError(
                f"{', '.join(sorted(folder.erased()))} was erased from {name}, and a comparison "
                "learns anew with everybody",
                "Compare with a configuration instead, or unlearn in the run: foul unlearn",
            )
        return load_config(str(folder.path / "config.toml"), settings)
    return load_config(name, settings)


def _start(config: Config, start: str) -> Config:
    """With what FedRecovery needs, and the objective that was asked for."""
    federation = config.federation
    if federation.history == "none":
        federation = federation.model_copy(update={"history": "domains"})
    objective = "supervised" if start == "plain" else config.learning.objective
    learning = config.learning.model_copy(update={"objective": objective})
    return config.model_copy(update={"federation": federation, "learning": learning})
