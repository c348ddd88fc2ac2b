import json
from pathlib import Path

import pytest
from small_runs import Crash, StopAfter, small_config

from foul import RunFolder, learn

from .conftest import Foul


def test_a_finished_run_is_shown(foul: Foul, finished: RunFolder) -> None:
    outcome = foul("info", finished.path)
    assert outcome.code == 0
    assert outcome.err == ""
    for text in (
        "learned after 3 rounds",
        "synthetic, 16 px",
        "4 in 2 domains",
        "z_K only",
        "tiny",
    ):
        assert text in outcome.out


def test_everything_as_json(foul: Foul, finished: RunFolder) -> None:
    told = foul("info", finished.path, "--json").json
    assert told.keys() == {
        "run",
        "stage",
        "rounds",
        "facts",
        "config",
        "model",
        "models",
        "disk_bytes",
        "summary",
    }
    assert (told["stage"], told["rounds"], told["models"]) == ("learned", 3, ["learned"])
    assert told["config"] == small_config().model_dump(mode="json")
    assert told["disk_bytes"] == finished.disk_bytes()
    parts = {part["part"]: part for part in told["model"]["parts"]}
    total = sum(part["bytes"] for part in parts.values() if part["deployed"])
    assert told["model"]["bytes"] == total
    assert told["model"]["share_of_v"] == pytest.approx(parts["V"]["bytes"] / total)


def test_an_unfinished_run_says_how_to_continue(foul: Foul, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(2))
    outcome = foul("info", tmp_path / "run")
    assert "still learning after 2 rounds" in outcome.out
    assert f"Continue with: foul learn --resume --out {tmp_path / 'run'}" in outcome.out
    told = foul("info", tmp_path / "run", "--json").json
    assert (told["stage"], told["models"], told["summary"]) == ("learning", [], {})


def test_what_is_no_run_folder_is_named(foul: Foul, tmp_path: Path) -> None:
    assert f"{tmp_path} is not a run folder" in foul("info", tmp_path).error()
    (tmp_path / "run.json").write_text("{")
    assert "run.json cannot be read" in foul("info", tmp_path).error()
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "classes": []}))
    assert "config.toml cannot be read" in foul("info", tmp_path).error()
