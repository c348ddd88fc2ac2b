import json
import shutil
from pathlib import Path

import pytest

from foul.data import check, known
from foul.errors import UserError

from .conftest import MakeFolder, write_image


def test_a_good_folder_is_ok(make_folder: MakeFolder) -> None:
    report = check(make_folder())
    assert report.ok
    assert report.warnings == ()
    assert report.counts == {name: {"cat": 5, "dog": 5} for name in ("ink", "oil")}
    assert report.images == 20


def test_unreadable_images_are_listed_with_paths(make_folder: MakeFolder) -> None:
    root = make_folder()
    (root / "ink" / "cat" / "2.png").write_bytes(b"broken")
    report = check(root)
    assert not report.ok
    assert list(report.unreadable) == ["ink/cat/2.png"]
    assert "1 images cannot be decoded, the first is ink/cat/2.png" in report.problems


def test_gaps_are_problems(make_folder: MakeFolder) -> None:
    root = make_folder({"ink": {"cat": 1, "dog": 1}, "oil": {"cat": 1}})
    assert check(root).problems == ("Domain 'oil' has no images of class 'dog'",)


def test_equal_files_in_two_domains_are_a_warning(make_folder: MakeFolder) -> None:
    root = make_folder()
    shutil.copy(root / "ink" / "cat" / "0.png", root / "oil" / "cat" / "9.png")
    report = check(root)
    assert report.ok
    assert report.warnings == (
        "1 images occur in more than one domain, for example ink/cat/0.png = oil/cat/9.png",
    )


def test_misplaced_images_are_a_warning(make_folder: MakeFolder) -> None:
    root = make_folder()
    write_image(root / "preview.png", 1)
    assert check(root).warnings == ("preview.png is ignored: not in a class folder",)


def test_differences_from_a_known_set(make_folder: MakeFolder) -> None:
    classes = dict.fromkeys((*known("pacs").classes[1:], "zebra"), 1)
    root = make_folder(dict.fromkeys(("art_painting", "cartoon", "skech", "photo"), classes))
    report = check(root, "PACS")
    assert report.name == "pacs"
    assert set(report.problems) == {
        "Domain 'sketch' is missing. Did you mean 'skech'?",
        "Class 'dog' is missing",
        "PACS has no class 'zebra'",
    }
    assert "PACS has no domain 'skech'" in report.warnings
    assert "Domain 'photo' has 7 images, not 1670" in report.warnings


def test_the_report_is_json(make_folder: MakeFolder) -> None:
    report = json.loads(json.dumps(check(make_folder()).to_dict()))
    assert report["ok"] is True
    assert report["counts"]["ink"] == {"cat": 5, "dog": 5}


def test_progress_counts_to_the_end(make_folder: MakeFolder) -> None:
    seen: list[tuple[int, int]] = []
    check(make_folder(), "folder", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20, 20)


def test_an_embedded_set_needs_no_check(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="embedded"):
        check(tmp_path, "digits")
