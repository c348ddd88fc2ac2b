import pytest
import torch

from foul.config.schema import DataConfig
from foul.data import Domain, load_dataset
from foul.errors import UserError


def config(**values: object) -> DataConfig:
    return DataConfig.model_validate({"name": "synthetic", "image_size": 8, **values})


def rows(domain: Domain) -> tuple[list[int], list[int]]:
    return domain.train.index.tolist(), domain.test.index.tolist()


def test_names_are_taken_as_users_type_them() -> None:
    assert load_dataset(config(name="Synthetic"), seed=0).name == "synthetic"
    with pytest.raises(UserError, match=r"'sinthetic'.*'synthetic'"):
        load_dataset(config(name="sinthetic"), seed=0)


def test_domains_of_an_embedded_set_are_chosen_in_the_asked_order() -> None:
    data = load_dataset(config(domains=("West", "north")), seed=0)
    assert data.domain_names == ("west", "north")
    with pytest.raises(UserError, match=r"no domain 'noth'.*'north'"):
        load_dataset(config(domains=("noth",)), seed=0)


def test_a_limit_keeps_the_shares_of_classes_and_test_part() -> None:
    domain = load_dataset(config(max_per_domain=42), seed=0).domains[0]
    assert torch.bincount(domain.train.targets).tolist() == [10, 10, 10]
    assert torch.bincount(domain.test.targets).tolist() == [4, 4, 4]


def test_a_limit_draws_each_domain_alone_and_keeps_the_parts_apart() -> None:
    whole = load_dataset(config(), seed=0)
    small = load_dataset(config(max_per_domain=20), seed=0)
    alone = load_dataset(config(max_per_domain=20, domains=("south",)), seed=0)
    assert rows(alone.domains[0]) == rows(small.domains[2])
    for part in ("train", "test"):
        kept, all_rows = (getattr(data.domains[0], part).index for data in (small, whole))
        assert set(kept.tolist()) <= set(all_rows.tolist())


def test_a_limit_above_the_size_changes_nothing() -> None:
    assert rows(load_dataset(config(max_per_domain=84), 0).domains[0]) == rows(
        load_dataset(config(), 0).domains[0]
    )


def test_a_limit_that_leaves_no_test_images_is_refused() -> None:
    with pytest.raises(UserError, match=r"max_per_domain=1 leaves domain 'north' without"):
        load_dataset(config(max_per_domain=1), seed=0)
