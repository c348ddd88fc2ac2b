import errno
import os
from pathlib import Path

import pytest

from foul.errors import MachineError
from foul.runs.atomic import remove_leftovers, replacing, write_text


def test_the_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old")
    write_text(file, "neü")
    assert file.read_text(encoding="utf-8") == "neü"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, failure: type[BaseException], existing: bool
) -> None:
    file = tmp_path / "a.txt"
    if existing:
        file.write_text("old")

    def fail() -> None:
        with replacing(file) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        fail()
    assert [f.read_text() for f in tmp_path.iterdir()] == ["old"] * existing


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_is_the_machines_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "a.txt"
    write_text(file, "old")
    monkeypatch.setattr(os, broken, full)
    with pytest.raises(MachineError, match=r"disk is full: .*a\.txt.*--resume") as caught:
        write_text(file, "new")
    assert caught.value.exit_code == 1
    assert [f.read_text() for f in tmp_path.iterdir()] == ["old"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"nowhere/a\.txt could not be written \(No such file"):
        write_text(tmp_path / "nowhere" / "a.txt", "text")


def test_the_old_content_stays_until_the_new_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old")
    seen = []
    real = os.fsync

    def watch(handle: int) -> None:
        real(handle)
        seen.append(file.read_text())

    monkeypatch.setattr(os, "fsync", watch)
    write_text(file, "new")
    assert seen == ["old", "new"]


def test_leftovers_of_a_kill_are_removed(tmp_path: Path) -> None:
    for name in (".a.txt.123.tmp", "a.txt", ".hidden", "b.tmp"):
        (tmp_path / name).write_text("x")
    remove_leftovers(tmp_path)
    assert sorted(f.name for f in tmp_path.iterdir()) == [".hidden", "a.txt", "b.tmp"]
