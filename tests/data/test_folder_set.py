import shutil
from pathlib import Path

import pytest
import torch

from foul.config.schema import DataConfig
from foul.data import Domain, DomainSet, known, load_dataset
from foul.data.folder_set import chosen_domains
from foul.errors import UserError

from .conftest import MakeFolder, write_image


def load(root: Path, seed: int = 0, **values: object) -> DomainSet:
    settings = {"name": "folder", "path": root, "cache": root.parent / "cache", "image_size": 8}
    return load_dataset(DataConfig.model_validate({**settings, **values}), seed)


def rows(domain: Domain) -> tuple[list[int], list[int]]:
    return domain.train.index.tolist(), domain.test.index.tolist()


def test_a_folder_becomes_domains_with_a_stratified_test_set(make_folder: MakeFolder) -> None:
    data = load(make_folder({"ink": {"cat": 20, "dog": 10}, "oil": {"cat": 5, "dog": 5}}))
    assert data.classes == ("cat", "dog")
    ink, oil = data.domains
    assert torch.bincount(ink.test.targets).tolist() == [4, 2]
    assert torch.bincount(ink.train.targets).tolist() == [16, 8]
    assert len(oil.test) == 2
    assert set(ink.train.index.tolist()).isdisjoint(ink.test.index.tolist())
    assert ink.train.batch(torch.arange(3))[0].shape == (3, 3, 8, 8)


def test_the_split_depends_on_seed_and_domain_only(make_folder: MakeFolder) -> None:
    root = make_folder({name: {"cat": 20, "dog": 20} for name in ("ink", "oil")})
    both = load(root)
    alone = load(root, domains=("oil",))
    assert rows(alone.domains[0]) == rows(both.domains[1])
    assert rows(load(root, seed=1).domains[1]) != rows(both.domains[1])


def test_file_names_tell_the_official_test_part(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for number, part in enumerate(("train", "test", "train")):
            write_image(tmp_path / "set" / "ink" / label / f"{part}_{number}.png", number)
    (domain,) = load(tmp_path / "set").domains
    # Sorted by name, the test image of each class comes first.
    assert rows(domain) == ([1, 2, 4, 5], [0, 3])


def test_domains_are_chosen_in_the_asked_order(make_folder: MakeFolder) -> None:
    data = load(make_folder(), domains=("OIL", "ink"))
    assert data.domain_names == ("oil", "ink")
    one = load(make_folder(), domains=("oil",))
    assert one.domain_names == ("oil",)


def test_an_unknown_or_repeated_domain_is_refused() -> None:
    with pytest.raises(UserError, match=r"no domain 'inc'.*Did you mean 'ink'"):
        chosen_domains(("inc",), ("ink", "oil"))
    with pytest.raises(UserError, match=r"names 'ink' twice"):
        chosen_domains(("ink", "INK"), ("ink", "oil"))


def test_corrupt_images_are_all_counted_or_skipped(make_folder: MakeFolder) -> None:
    root = make_folder()
    for path in ("ink/dog/1.png", "oil/cat/0.png"):
        (root / path).write_bytes(b"broken")
    message = r"ink/dog/1\.png \(and 1 more\) cannot be decoded: 2 of 20.*data\.allow_corrupt=true"
    with pytest.raises(UserError, match=message):
        load(root)
    data = load(root, allow_corrupt=True)
    assert [len(d.train) + len(d.test) for d in data.domains] == [9, 9]
    used = torch.cat([data.domains[1].train.index, data.domains[1].test.index])
    assert 0 not in used.tolist()


def test_a_missing_path_says_where_to_get_the_set() -> None:
    with pytest.raises(UserError, match=r"'pacs' needs a folder or zip.*qmul.*data\.path"):
        load_dataset(DataConfig(name="pacs"), seed=0)


def test_a_known_set_must_have_its_domains_and_classes(make_folder: MakeFolder) -> None:
    classes = dict.fromkeys(known("pacs").classes, 2)
    names = ["art_painting", "Cartoon", "photo", "skech"]
    root = make_folder(dict.fromkeys(names, classes))
    with pytest.raises(UserError, match=r"PACS has a domain 'sketch'.*'skech'.*data\.name=folder"):
        load(root, name="pacs")
    (root / "skech").rename(root / "sketch")
    assert load(root, name="PACS").name == "pacs"
    shutil.rmtree(root / "sketch")
    assert load(root, name="pacs", domains=("photo",)).domain_names == ("photo",)
    shutil.rmtree(root / "photo" / "dog")
    with pytest.raises(UserError, match=r"PACS has a class 'dog'"):
        load(root, name="pacs", domains=("photo",))
    write_image(root / "photo" / "zebra" / "0.png", 1)
    with pytest.raises(UserError, match=r"class 'zebra' that PACS does not have"):
        load(root, name="pacs", domains=("photo",))


def test_a_class_with_no_images_stops_the_load(make_folder: MakeFolder) -> None:
    root = make_folder()
    shutil.rmtree(root / "oil" / "dog")
    with pytest.raises(UserError, match=r"'oil'.*no images of class 'dog'"):
        load(root)


def test_a_domain_with_one_image_is_too_small(make_folder: MakeFolder) -> None:
    with pytest.raises(UserError, match=r"'ink'.*has 1 usable images"):
        load(make_folder({"ink": {"cat": 1}}))


def test_progress_runs_over_all_domains(make_folder: MakeFolder, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    config = DataConfig(name="folder", path=make_folder(), cache=tmp_path / "c", image_size=8)
    load_dataset(config, 0, lambda done, total: seen.append((done, total)))
    assert seen == [(number, 20) for number in range(1, 21)]


def test_pacs_has_its_published_sizes(shared_data: Path, tmp_path: Path) -> None:
    data = load(
        shared_data / "PACS64.zip", name="pacs", cache=tmp_path, domains=("photo",), image_size=16
    )
    (photo,) = data.domains
    assert (len(photo.train), len(photo.test)) == (1336, 334)
    assert data.classes == known("pacs").classes


def test_digits28_keeps_the_official_test_part(shared_data: Path, tmp_path: Path) -> None:
    data = load(
        shared_data / "Digits28.zip",
        name="digits28",
        cache=tmp_path,
        domains=("usps",),
        image_size=28,
    )
    assert torch.bincount(data.domains[0].test.targets).tolist() == [120] * 10
    assert torch.bincount(data.domains[0].train.targets).tolist() == [480] * 10
