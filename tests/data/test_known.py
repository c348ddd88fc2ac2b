import pytest

from foul.config.schema import DataConfig
from foul.data import known, known_sets, load_dataset
from foul.errors import UserError


def test_published_sizes() -> None:
    sizes = {entry.name: (entry.images, len(entry.classes)) for entry in known_sets()}
    assert sizes["pacs"] == (9991, 7)
    assert sizes["vlcs"] == (10729, 5)
    assert sizes["officehome"] == (15588, 65)
    assert sizes["terra-incognita"] == (24330, 10)
    assert sizes["digits28"] == (24000, 10)


def test_names_and_classes_are_unique() -> None:
    names = [entry.name for entry in known_sets()]
    assert len(set(names)) == len(names)
    for entry in known_sets():
        assert len(set(entry.classes)) == len(entry.classes)


def test_lookup_ignores_case_and_punctuation() -> None:
    assert known("Office-Home").name == "officehome"
    assert known("TerraIncognita").name == "terra-incognita"


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'pasc'.*'pacs'.*foul data list"):
        known("pasc")


@pytest.mark.parametrize("name", [entry.name for entry in known_sets() if entry.embedded])
def test_the_catalogue_tells_what_embedded_sets_contain(name: str) -> None:
    entry = known(name)
    data = load_dataset(DataConfig(name=name, image_size=entry.image_size), seed=0)
    assert data.classes == entry.classes
    counts = {domain.name: len(domain.train) + len(domain.test) for domain in data.domains}
    assert counts == entry.domains
