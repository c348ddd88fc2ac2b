"""A Flower app for people who start runs with `flwr run`."""

from pathlib import Path

from foul.errors import UserError
from foul.flower.project import write_app

README = """# A Flower app that can forget

The code is the package `foul`, installed at the server and at every node. This folder only names
it, because Flower ships the .py, .toml, .json, .yaml and .md files below it to all nodes: keep
data, keys and runs elsewhere.

    export FLWR_HOME=FEDERATION/flwr                 # made by `foul federation up`
    flwr run . foul --stream
    flwr run . foul --stream -c 'command="unlearn runs/flower --forget client:plain-0"'
    flwr list foul                                   # did it fail? --stream never says so

`command` is a foul command without the leading `foul`: learn, unlearn, run, compare, evaluate or
erase. Its relative paths count in `cwd`, on the server.
"""
IGNORED = "*.fab\n__pycache__/\nruns/\n"


def init_project(folder: Path, command: str, cwd: Path) -> None:
    """Write pyproject.toml, README.md and .gitignore into a new folder.

    Raises:
        UserError: there is something in it.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(
            f"{folder} is not empty", "Choose a new folder: all in it is shipped to every node."
        )
    write_app(folder, command, str(cwd.absolute()))
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / ".gitignore").write_text(IGNORED, encoding="utf-8")
