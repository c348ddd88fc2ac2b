"""`foul config`."""

import json
from typing import Annotated

import typer

from foul.cli.arguments import split_config
from foul.cli.output import JSON_OPTION, print_json, print_table
from foul.config import Config, load_config, shipped_configs
from foul.config.load import config_to_toml, describe_keys

app = typer.Typer(no_args_is_help=True, help="Look at configurations and their keys.")


@app.command("list")
def list_configs(as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """The configurations that come with foul."""
    rows = []
    for name, path in shipped_configs().items():
        first = path.read_text(encoding="utf-8").splitlines()[0]
        rows.append([name, first.lstrip("# ")])
    if as_json:
        print_json([{"name": name, "about": about} for name, about in rows])
    else:
        print_table("Shipped configurations", ["name", "about"], rows)


@app.command()
def show(
    config: Annotated[str, typer.Argument(help="A TOML file or a shipped name.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change.")
    ] = None,
) -> None:
    """Print a configuration with all its defaults, as TOML."""
    typer.echo(config_to_toml(load_config(*split_config(config, overrides))))


@app.command()
def schema(as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Every key: its default, what is allowed, what it means (--json: a JSON schema)."""
    if as_json:
        typer.echo(json.dumps(Config.model_json_schema(), indent=2))
    else:
        print_table("Keys", ["key", "default", "allowed", "meaning"], describe_keys())
