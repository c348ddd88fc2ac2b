import tomllib
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import load_and_validate

from foul.flower.project import write_app


def test_flower_finds_both_apps_and_the_command(tmp_path: Path) -> None:
    file = write_app(tmp_path / "app", 'learn digits --out "my runs"', "/data")
    config, warnings = load_and_validate(file)
    app = config["tool"]["flwr"]["app"]
    assert app["config"] == {"command": 'learn digits --out "my runs"', "cwd": "/data", "job": ""}
    assert [warning for warning in warnings if "license" not in warning.lower()] == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_but_the_project_file_is_shipped(tmp_path: Path) -> None:
    file = write_app(tmp_path / "app")
    assert list((tmp_path / "app").iterdir()) == [file]
    assert len(build_fab_from_disk(tmp_path / "app")) < 10_000


def test_flower_is_not_told_to_install_anything(tmp_path: Path) -> None:
    project = tomllib.loads(write_app(tmp_path).read_text())["project"]
    assert project["dependencies"] == []
