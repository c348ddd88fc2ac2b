import json
from pathlib import Path

import PIL.Image
import pytest
from small_runs import Crash, StopAfter, small_config

from foul import RunFolder, learn

from .conftest import Foul


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    PIL.Image.new("RGB", (40, 30), (200, 10, 90)).save(tmp_path / "picture.jpg")
    return tmp_path / "picture.jpg"


def test_a_run_and_its_export_predict_the_same(
    foul: Foul, finished: RunFolder, tmp_path: Path, picture: Path
) -> None:
    told = foul("export", finished.path, "--out", tmp_path / "model", "--json").json
    assert [Path(entry["file"]).name for entry in told] == [
        "model.safetensors",
        "model.pt2",
        "model.json",
    ]
    assert all(entry["bytes"] == Path(entry["file"]).stat().st_size > 0 for entry in told)
    from_run, from_export = (
        foul("predict", path, picture, picture, "--json").json
        for path in (finished.path, tmp_path / "model")
    )
    assert from_run == from_export
    assert [entry.keys() for entry in from_run] == [{"image", "label", "confidence"}] * 2
    assert from_run[0]["label"] in ("bars", "checks", "disc")
    assert 1 / 3 <= from_run[0]["confidence"] <= 1
    table = foul("predict", tmp_path / "model", picture).out
    assert from_run[0]["label"] in table


def test_without_a_learned_model_the_remedy_is_told(
    foul: Foul, tmp_path: Path, picture: Path
) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(1))
    for arguments in (("export", tmp_path / "run"), ("predict", tmp_path / "run", picture)):
        line = foul(*arguments).error()
        assert "has no model 'learned' (it has: none)" in line
        assert "--resume" in line
    assert not (tmp_path / "run" / "export").exists()


def test_another_model_must_exist(foul: Foul, finished: RunFolder, tmp_path: Path) -> None:
    line = foul("export", finished.path, "--model", "foul", "--out", tmp_path / "x").error()
    assert "no model 'foul' (it has: learned)" in line
    assert not (tmp_path / "x").exists()


def test_a_file_in_the_way_is_named(foul: Foul, finished: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "model"):
        line = foul("export", finished.path, "--out", out).error()
        assert f"{out} cannot be a folder" in line
        assert "Choose another --out." in line
    assert (tmp_path / "file").read_text() == "mine"


def test_what_is_no_image_is_named(foul: Foul, finished: RunFolder, tmp_path: Path) -> None:
    text = tmp_path / "text.png"
    text.write_text("not an image")
    assert "text.png is not a readable image" in foul("predict", finished.path, text).error()
    gone = foul("predict", finished.path, tmp_path / "gone.png").error()
    assert "gone.png cannot be read (No such file or directory)" in gone
    assert "cannot be read (Is a directory)" in foul("predict", finished.path, tmp_path).error()


def test_what_is_neither_run_nor_export_is_named(foul: Foul, tmp_path: Path, picture: Path) -> None:
    assert f"{tmp_path} is not a run folder" in foul("predict", tmp_path, picture).error()


@pytest.mark.parametrize("content", ["{", "{}", "[]", json.dumps({"model": {"width": -1}})])
def test_a_damaged_export_is_named(
    foul: Foul, finished: RunFolder, tmp_path: Path, picture: Path, content: str
) -> None:
    assert foul("export", finished.path, "--out", tmp_path / "model").code == 0
    (tmp_path / "model" / "model.json").write_text(content)
    line = foul("predict", tmp_path / "model", picture).error()
    assert "model.json was not written by foul" in line
    assert "Export it again" in line
