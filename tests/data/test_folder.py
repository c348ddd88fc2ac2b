import shutil
from pathlib import Path

import pytest

from foul.data.folder import require_every_class, scan
from foul.errors import UserError

from .conftest import MakeFolder, write_image


def test_listing_is_sorted_and_complete(make_folder: MakeFolder) -> None:
    root = make_folder({"oil": {"dog": 2, "cat": 1}, "ink": {"dog": 1, "cat": 1}})
    listing = scan(root)
    assert listing.domains == ("ink", "oil")
    assert listing.classes == ("cat", "dog")
    assert [image.path for image in listing.images] == [
        "ink/cat/0.png",
        "ink/dog/0.png",
        "oil/cat/0.png",
        "oil/dog/0.png",
        "oil/dog/1.png",
    ]
    assert {(image.domain, image.label) for image in listing.of("oil")} == {
        ("oil", "cat"),
        ("oil", "dog"),
    }


def test_a_zip_and_a_wrapped_folder_list_the_same(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder()
    inner = Path(shutil.make_archive(str(tmp_path / "inner"), "zip", root))
    outer = Path(shutil.make_archive(str(tmp_path / "outer"), "zip", root.parent, root.name))
    wrapped = tmp_path / "wrapped"
    shutil.copytree(root, wrapped / "NAME")
    expected = [(image.domain, image.label) for image in scan(root).images]
    for path in (inner, outer, wrapped):
        listing = scan(path)
        assert [(image.domain, image.label) for image in listing.images] == expected
        assert listing.classes == ("cat", "dog")


def test_hidden_and_other_files_are_ignored(make_folder: MakeFolder) -> None:
    root = make_folder()
    expected = scan(root)
    write_image(root / "ink" / "cat" / "._0.png", 1)
    write_image(root / "__MACOSX" / "ink" / "cat" / "0.png", 1)
    write_image(root / ".thumbs" / "cat" / "0.png", 1)
    (root / "README.txt").write_text("notes")
    (root / "notes" / "2024").mkdir(parents=True)
    assert scan(root) == expected


def test_images_elsewhere_are_told(make_folder: MakeFolder) -> None:
    root = make_folder()
    write_image(root / "preview.png", 1)
    assert scan(root).misplaced == ("preview.png",)


def test_a_single_domain_is_a_data_set(make_folder: MakeFolder) -> None:
    assert scan(make_folder({"ink": {"cat": 1, "dog": 1}})).domains == ("ink",)


def test_content_changes_the_stamp(make_folder: MakeFolder) -> None:
    root = make_folder()
    before = scan(root)
    write_image(root / "ink" / "cat" / "0.png", 999, size=13)
    after = scan(root)
    changed = [a.path for a, b in zip(after.images, before.images, strict=True) if a != b]
    assert changed == ["ink/cat/0.png"]


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing at .*nowhere.*data\.path"):
        scan(tmp_path / "nowhere")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contains no images.*ROOT/DOMAIN/CLASS"):
        scan(tmp_path)


def test_a_file_that_is_no_zip_is_named(tmp_path: Path) -> None:
    (tmp_path / "set.zip").write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"set\.zip is neither a folder nor a zip"):
        scan(tmp_path / "set.zip")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("cat/0.png", r"looks like ROOT/CLASS/\*: cat/0\.png"),
        ("0.png", r"no domain folders"),
        ("a/b/c/d/0.png", r"too deep"),
    ],
)
def test_another_layout_is_explained(tmp_path: Path, path: str, message: str) -> None:
    write_image(tmp_path / path, 1)
    with pytest.raises(UserError, match=message):
        scan(tmp_path)


def test_a_class_without_images_is_named(make_folder: MakeFolder) -> None:
    listing = scan(make_folder({"ink": {"cat": 1, "dog": 1}, "oil": {"cat": 1}}))
    with pytest.raises(UserError, match=r"'oil'.*no images of class 'dog'"):
        require_every_class(listing)
    require_every_class(listing.only(["ink"]))


def test_an_empty_class_or_domain_folder_is_named(make_folder: MakeFolder) -> None:
    with pytest.raises(UserError, match=r"'ink'.*no images of class 'yak'"):
        require_every_class(scan(make_folder({"ink": {"cat": 1, "yak": 0}}, root="one")))
    counts = {"ink": {"cat": 1, "dog": 1}, "oil": {"cat": 0, "dog": 0}}
    with pytest.raises(UserError, match=r"'oil'.*no images of class 'cat' \(and 1 more"):
        require_every_class(scan(make_folder(counts, root="two")))
