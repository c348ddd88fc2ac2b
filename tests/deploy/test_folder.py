"""Where a federation's files are, and which folders are refused."""

from pathlib import Path

import pytest

from foul.deploy.folder import FederationFolder
from foul.errors import UserError


def test_only_the_owner_can_look_inside(tmp_path: Path) -> None:
    folder = FederationFolder.at(tmp_path / "fed")
    folder.create(["north-0"])
    folders = [folder.path, *(path for path in folder.path.rglob("*") if path.is_dir())]
    assert folder.node("north-0") in folders
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UserError, match="is not empty and holds no federation"):
        FederationFolder.at(tmp_path).create()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_fine(tmp_path: Path) -> None:
    FederationFolder.at(tmp_path).create()
    assert (tmp_path / "certs").is_dir()


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 90)
    with pytest.raises(UserError, match=r"too long for a socket's path.*shorter --dir"):
        FederationFolder.at(path).create(["north-0"])
    assert not path.exists()


@pytest.mark.parametrize("name", ["my fed", "it's", 'a"b', "a\\b", "a\nb", "a$b", "50%", "a;b"])
def test_names_that_mean_something_to_shells_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="spaces, quotes or signs"):
        FederationFolder.at(tmp_path / name).create()


def test_a_folder_without_a_plan_holds_no_federation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no federation"):
        FederationFolder.open(tmp_path)


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FederationFolder.at(Path("fed")).config == tmp_path / "fed" / "config.toml"
