import errno
import os
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import foul.data.cache as module
from foul.data.cache import Decoded, cache_root, cached
from foul.data.folder import scan
from foul.errors import MachineError

from .conftest import MakeFolder

Usage = namedtuple("Usage", "total used free")


def load(root: Path, cache: Path, size: int = 12, allow_corrupt: bool = False) -> Decoded:
    return cached(cache, root, scan(root).of("ink"), size, allow_corrupt)


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "images-v1").iterdir())


@pytest.fixture
def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(module, "decode", fail)


def test_rows_are_the_decoded_images(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder()
    decoded = load(root, tmp_path / "cache")
    assert decoded.images.shape == (10, 12, 12, 3)
    for image, row in zip(scan(root).of("ink"), decoded.images, strict=True):
        np.testing.assert_array_equal(row.numpy(), np.asarray(PIL.Image.open(root / image.path)))


def test_the_second_load_decodes_nothing(
    make_folder: MakeFolder, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root = make_folder()
    first = load(root, tmp_path / "cache")
    request.getfixturevalue("forbid_decoding")
    second = load(root, tmp_path / "cache")
    assert second.images.equal(first.images)
    assert len(entries(tmp_path / "cache")) == 1


def test_size_and_content_have_their_own_entries(make_folder: MakeFolder, tmp_path: Path) -> None:
    root, cache = make_folder(), tmp_path / "cache"
    load(root, cache)
    assert load(root, cache, size=8).images.shape == (10, 8, 8, 3)
    os.utime(root / "ink" / "cat" / "0.png", ns=(1, 1))
    load(root, cache)
    assert len(entries(cache)) == 3


def test_a_moved_zip_is_read(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder()
    archive = Path(shutil.make_archive(str(tmp_path / "a"), "zip", root.parent, root.name))
    from_zip = load(archive, tmp_path / "cache")
    assert from_zip.images.equal(load(root, tmp_path / "cache").images)


@pytest.mark.parametrize("damage", ["truncate", "garbage", "missing", "no-list"])
def test_a_damaged_entry_is_built_again(
    make_folder: MakeFolder, tmp_path: Path, damage: str
) -> None:
    root, cache = make_folder(), tmp_path / "cache"
    expected = load(root, cache).images.clone()
    (entry,) = entries(cache)
    file = entry / "images.npy"
    if damage == "truncate":
        os.truncate(file, file.stat().st_size - 1)
    elif damage == "garbage":
        file.write_bytes(b"garbage")
    elif damage == "missing":
        file.unlink()
    else:
        (entry / "corrupt.json").unlink()
    assert load(root, cache).images.equal(expected)
    assert entries(cache) == [entry]


def test_corrupt_rows_are_told_and_looked_at_again(make_folder: MakeFolder, tmp_path: Path) -> None:
    root, cache = make_folder(), tmp_path / "cache"
    broken = root / "ink" / "cat" / "3.png"
    broken.write_bytes(b"broken")
    assert load(root, cache).corrupt == (3,)
    assert load(root, cache, allow_corrupt=True).corrupt == (3,)
    shutil.copy(root / "ink" / "cat" / "2.png", broken)
    assert load(root, cache).corrupt == ()


def test_writing_to_a_row_changes_no_file(make_folder: MakeFolder, tmp_path: Path) -> None:
    root, cache = make_folder(), tmp_path / "cache"
    decoded = load(root, cache)
    expected = decoded.images.clone()
    decoded.images.zero_()
    assert load(root, cache).images.equal(expected)


def test_too_little_space_is_noticed_beforehand(
    make_folder: MakeFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forbid_decoding: None,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 99, 1))
    with pytest.raises(MachineError, match=r"cache.*is full: domain 'ink' needs 4,320 bytes"):
        load(make_folder(), tmp_path / "cache")
    assert entries(tmp_path / "cache") == []


def test_a_disk_that_fills_up_leaves_nothing(
    make_folder: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=r"is full.*data\.cache"):
        load(make_folder(), tmp_path / "cache")
    assert entries(tmp_path / "cache") == []


def test_an_unwritable_cache_is_named(make_folder: MakeFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match=r"Cannot write the cache .*file.*FOUL_CACHE"):
        load(make_folder(), tmp_path / "file")


def test_an_interrupt_leaves_nothing(
    make_folder: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "decode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load(make_folder(), tmp_path / "cache")
    assert entries(tmp_path / "cache") == []


def test_leftovers_of_a_killed_process_are_removed(make_folder: MakeFolder, tmp_path: Path) -> None:
    root, cache = make_folder(), tmp_path / "cache"
    load(root, cache)
    (entry,) = entries(cache)
    old, new = (entry.with_name(f".{entry.name}.{end}") for end in ("old", "new"))
    for folder in (old, new):
        shutil.copytree(entry, folder)
    for file in old.iterdir():
        os.utime(file, (1, 1))
    shutil.rmtree(entry)
    load(root, cache)
    assert entries(cache) == sorted([entry, new])


def test_progress_counts_to_the_end(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder()
    seen: list[tuple[int, int]] = []
    cached(
        tmp_path / "cache",
        root,
        scan(root).of("oil"),
        8,
        False,
        lambda done, total: seen.append((done, total)),
    )
    assert seen == [(number, 10) for number in range(1, 11)]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOUL_CACHE", str(tmp_path))
    assert cache_root(Path("here")) == Path("here")
    assert cache_root(None) == tmp_path
    monkeypatch.delenv("FOUL_CACHE")
    assert cache_root(None) == Path.home() / ".cache" / "foul"
