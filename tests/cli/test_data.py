from pathlib import Path

import pytest

from .conftest import Foul


def test_known_sets_are_listed(foul: Foul) -> None:
    told = {entry["name"]: entry for entry in foul("data", "list", "--json").json}
    assert {"digits", "pacs", "vlcs", "officehome", "synthetic"} <= {
        name.replace("-", "") for name in told
    }
    assert told["digits"]["embedded"]
    for entry in told.values():
        assert entry.keys() == {
            "name",
            "title",
            "domains",
            "classes",
            "images",
            "image_size",
            "embedded",
            "source",
            "reference",
        }
        assert entry["images"] == sum(entry["domains"].values()) or entry["embedded"]
    table = foul("data", "list").out
    assert all(name in table for name in told)


def test_a_good_folder_passes(foul: Foul, own_images: Path) -> None:
    outcome = foul("data", "check", own_images)
    assert outcome.code == 0
    assert "Nothing is wrong with it." in outcome.out
    told = foul("data", "check", own_images, "--json").json
    assert told["ok"]
    assert told["images"] == 48
    assert told["counts"] == {domain: {"day": 12, "night": 12} for domain in ("ink", "oil")}


def test_a_bad_folder_fails_with_reasons(foul: Foul, own_images: Path) -> None:
    (own_images / "ink" / "day" / "3.png").write_bytes(b"no image")
    outcome = foul("data", "check", own_images)
    assert outcome.code == 2
    assert "unreadable: ink/day/3.png" in outcome.out
    assert "It cannot be used as it is." in outcome.out
    assert foul("data", "check", own_images, "--json").code == 2


def test_a_folder_is_compared_with_a_known_set(foul: Foul, own_images: Path) -> None:
    outcome = foul("data", "check", own_images, "--name", "pacs")
    assert outcome.code == 2
    assert "Domain 'sketch' is missing" in outcome.out
    assert "'pasc'" in foul("data", "check", own_images, "--name", "pasc").error()


@pytest.mark.parametrize("command", ["check", "prepare"])
def test_a_missing_folder_is_named(foul: Foul, tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone"
    arguments = [gone] if command == "check" else ["folder", "--path", gone]
    assert f"nothing at {gone}" in foul("data", command, *arguments).error()


def test_preparing_fills_the_cache(foul: Foul, own_images: Path, tmp_path: Path) -> None:
    arguments = ("data", "prepare", "folder", "--path", own_images, "--image-size", 16)
    told = foul(*arguments, "--json").json
    assert told == {
        "name": "folder",
        "image_size": 16,
        "cache": str(tmp_path / "cache"),
        "bytes": 48 * 16 * 16 * 3,
        "domains": {domain: {"train": 19, "test": 5} for domain in ("ink", "oil")},
    }
    assert list((tmp_path / "cache").iterdir())
    assert "cached in" in foul(*arguments).out


def test_preparing_an_impossible_size_is_refused(foul: Foul) -> None:
    for size in (2, 0, -8, 99999):
        line = foul("data", "prepare", "synthetic", "--image-size", size).error()
        assert f"data.image_size={size}" in line


def test_preparing_an_unknown_set_suggests_the_nearest(foul: Foul) -> None:
    assert "Did you mean 'pacs'?" in foul("data", "prepare", "pasc").error()
    assert "Set data.path" in foul("data", "prepare", "pacs").error()
