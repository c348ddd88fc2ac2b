"""The Flower app that `foul flower init` writes."""

import tomllib
from pathlib import Path

import pytest

from foul.deploy.project import init_project
from foul.errors import UserError


def test_the_project_names_the_apps_of_this_package(tmp_path: Path) -> None:
    init_project(tmp_path / "app", "learn digits --out runs/x", tmp_path)
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())
    flower = project["tool"]["flwr"]["app"]
    assert flower["components"] == {
        "serverapp": "foul.flower.server_app:app",
        "clientapp": "foul.flower.client_app:app",
    }
    assert flower["config"]["command"] == "learn digits --out runs/x"
    assert flower["config"]["cwd"] == str(tmp_path)
    # Flower would install them at every run.
    assert project["project"]["dependencies"] == []


def test_nothing_is_shipped_that_should_stay(tmp_path: Path) -> None:
    init_project(tmp_path / "app", "learn digits", tmp_path)
    names = {path.name for path in (tmp_path / "app").rglob("*")}
    assert names == {"pyproject.toml", "README.md", ".gitignore"}


def test_flower_accepts_the_project(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="needs foul[flower]")
    from flwr.cli.config_utils import load_and_validate

    init_project(tmp_path / "app", "learn digits", tmp_path)
    config, problems = load_and_validate(tmp_path / "app" / "pyproject.toml", check_module=False)[
        :2
    ]
    assert config
    assert not problems


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.json").touch()
    with pytest.raises(UserError, match="is not empty"):
        init_project(tmp_path, "learn digits", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["data.json"]
