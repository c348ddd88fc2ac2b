from pathlib import Path

import PIL.Image
import pytest

from foul.data.known import known
from foul.errors import UserError
from foul.experiments.reproduce.made import made_source
from foul.experiments.reproduce.sources import Source, find_sources

FOUR = ("pacs", "vlcs")


def folder(root: Path, domains: tuple[str, ...], classes: tuple[str, ...]) -> Path:
    for domain in domains:
        for label in classes:
            (root / domain / label).mkdir(parents=True)
            PIL.Image.new("RGB", (4, 4)).save(root / domain / label / "1.png")
    return root


def test_a_known_set_is_recognised_by_its_domains_and_classes(tmp_path: Path) -> None:
    entry = known("pacs")
    # Spelt as some copies of it do.
    domains = tuple(name.upper() for name in entry.domains)
    path = folder(tmp_path / "my copy", domains, entry.classes)
    [source] = find_sources([str(path)], (), FOUR)
    assert (source.name, source.path) == ("pacs", path)
    assert source.domains == ("ART_PAINTING", "CARTOON", "PHOTO", "SKETCH")
    assert source.title == "PACS"


def test_other_images_are_a_folder(tmp_path: Path) -> None:
    path = folder(tmp_path / "scans", ("mri", "ct"), ("a", "b"))
    [source] = find_sources([str(path)], (), FOUR)
    assert (source.name, source.title, source.domains) == ("folder", "scans", ("ct", "mri"))


def test_a_set_that_is_not_what_it_is_said_to_be(tmp_path: Path) -> None:
    path = folder(tmp_path / "scans", ("mri", "ct"), ("a", "b"))
    with pytest.raises(UserError, match="PACS has a domain 'art_painting'"):
        find_sources([str(path)], ["pacs"], FOUR)
    with pytest.raises(UserError, match="No data set is called 'pax'"):
        find_sources([str(path)], ["pax"], FOUR)
    with pytest.raises(UserError, match="1 folders and 2 names"):
        find_sources([str(path)], ["pacs", "vlcs"], FOUR)


def test_embedded_sets_need_no_folder() -> None:
    for texts, names in ((["digits"], ()), ((), ["digits"])):
        [source] = find_sources(list(texts), list(names), FOUR)
        assert (source.name, source.path) == ("digits", None)


def test_a_name_is_a_name_even_if_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    (source,) = find_sources((), ["digits"], ())
    assert (source.name, source.path) == ("digits", None)


def test_without_data_it_says_where_to_get_them() -> None:
    with pytest.raises(UserError) as error:
        find_sources((), (), FOUR)
    text = str(error.value)
    assert "PACS: https://sketchx" in text
    assert "DomainBed" in text
    assert "ROOT/DOMAIN/CLASS" in text
    assert "foul data list" in text


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is nothing at"):
        find_sources([str(tmp_path / "PACS")], (), FOUR)
    with pytest.raises(UserError, match="Did you mean 'digits'"):
        find_sources(["digit"], (), FOUR)


def test_whom_to_forget() -> None:
    source = Source("pacs", None, ("photo", "sketch"))
    assert source.requests(()) == ("domain:sketch",)
    assert source.requests(("all",)) == ("domain:photo", "domain:sketch")
    assert source.requests(("client:photo-0",)) == ("client:photo-0",)


def test_made_images_have_the_layout_of_the_set(tmp_path: Path) -> None:
    made = made_source("vlcs", tmp_path)
    assert made.made
    assert made.title == "VLCS (made images)"
    first = sorted(tmp_path.rglob("*.png"))
    assert len(first) == 4 * 5 * 10
    times = [file.stat().st_mtime_ns for file in first]
    # Given by its path, it is what it looks like.
    [found] = find_sources([str(made.path)], (), FOUR)
    assert (found.name, found.made) == ("vlcs", False)
    assert made_source("vlcs", tmp_path) == made
    assert [file.stat().st_mtime_ns for file in first] == times


def test_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    two = [folder(tmp_path / n / "images", ("mri", "ct"), ("a", "b")) for n in ("one", "two")]
    with pytest.raises(UserError, match="Two of the data sets are called images"):
        find_sources([str(path) for path in two], (), FOUR)


def test_files_of_unknown_folders_have_names_of_their_own(tmp_path: Path) -> None:
    paths = [folder(tmp_path / name, ("mri", "ct"), ("a", "b")) for name in ("My Scans", "other")]
    found = find_sources([str(path) for path in paths], (), FOUR)
    assert [source.key for source in found] == ["my-scans", "other"]
    assert Source("pacs", paths[0], ("a",)).key == "pacs"
