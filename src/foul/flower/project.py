"""The Flower app: a project file that names the two apps in this package."""

from pathlib import Path

import tomli_w

from foul.version import __version__

NAME = "foul-app"


def write_app(folder: Path, command: str = "", cwd: str = "") -> Path:
    """Write the project that `flwr run FOLDER` starts; answers its pyproject.toml.

    Flower ships everything in the folder to all nodes, so nothing else belongs there. `foul` itself
    is not among its dependencies: nodes have it installed.

    Args:
        folder: where to; made if it is not there.
        command: what a run does unless it is told otherwise, without the leading `foul`.
        cwd: the folder in which the command's relative paths count.
    """
    folder.mkdir(parents=True, exist_ok=True)
    project = {
        "project": {
            "name": NAME,
            "version": __version__,
            "description": "Federated learning that can forget",
            "license": "Apache-2.0",
            "dependencies": [],
        },
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "foul",
                    "components": {
                        "serverapp": "foul.flower.server_app:app",
                        "clientapp": "foul.flower.client_app:app",
                    },
                    "config": {"command": command, "cwd": cwd, "job": ""},
                }
            }
        },
    }
    file = folder / "pyproject.toml"
    file.write_text(tomli_w.dumps(project), encoding="utf-8")
    return file
