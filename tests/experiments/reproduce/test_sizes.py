from pathlib import Path

import pytest

from foul.errors import UserError
from foul.experiments.reproduce.methods import sized, variants
from foul.experiments.reproduce.plan import Variant
from foul.experiments.reproduce.sizes import SIZES, config_for, options_for, parse_size
from foul.experiments.reproduce.sources import Source
from foul.unlearning.methods import METHODS, make_method

PATH = Path("/data/set.zip")


def source(name: str) -> Source:
    return Source(name, PATH, ("a", "b"))


def test_the_paper_size_is_the_authors_setting() -> None:
    pacs = config_for(source("pacs"), "paper", {})
    assert (pacs.model.backbone, pacs.model.width, pacs.data.image_size) == ("resnet18", 1.0, 64)
    assert (pacs.learning.rounds, pacs.clients.per_domain) == (100, 5)
    assert config_for(source("terra-incognita"), "paper", {}).model.backbone == "resnet50"
    digits = config_for(source("digits28"), "paper", {})
    assert (digits.data.name, digits.data.image_size) == ("digits28", 28)
    own = config_for(source("folder"), "paper", {})
    assert (own.data.path, own.learning.rounds) == (PATH, 100)


def test_two_cores_get_a_quarter_of_the_width_and_no_more_images_than_pacs_has() -> None:
    pacs = config_for(source("pacs"), "cpu", {})
    assert (pacs.model.backbone, pacs.model.width) == ("resnet18", 0.25)
    assert pacs.data.max_per_domain is None
    for name in ("vlcs", "officehome", "terra-incognita", "folder"):
        config = config_for(source(name), "cpu", {})
        assert (config.data.name, config.data.max_per_domain) == (name, 2500)
        assert config.model == pacs.model
    assert config_for(source("digits28"), "cpu", {}).learning.rounds == 20
    assert config_for(source("digits"), "cpu", {}).learning.rounds == 12


@pytest.mark.parametrize("size", SIZES)
def test_every_size_keeps_what_fedrecovery_needs_and_takes_changes(size: str) -> None:
    config = config_for(source("pacs"), parse_size(size), {"learning.rounds": 3, "seed": 5})
    assert config.federation.history == "domains"
    assert (config.learning.rounds, config.seed) == (3, 5)


@pytest.mark.parametrize("size", SIZES)
def test_every_method_takes_the_options_of_the_size(size: str) -> None:
    for method in METHODS:
        make_method(method, options_for(method, parse_size(size)))
    rounds = {m: make_method(m, options_for(m, "paper")).options for m in ("not", "foul-paper")}
    assert {options.rounds for options in rounds.values()} == {50}
    for method in ("fedosd", "fused", "fused-lora", "fedcdp", "mode", "retrain-matched"):
        assert make_method(method, options_for(method, "paper")).options.rounds == 50


def test_own_options_win() -> None:
    variant = sized(Variant("x", "foul-paper", ("rounds=3",)), "paper")
    assert make_method("foul-paper", variant.options).options.rounds == 3


def test_rows_can_be_chosen() -> None:
    assert [row.label for row in variants("cpu", ("Retrain", "FOUL (1)"))] == [
        "Retrain",
        "FOUL (1)",
    ]
    labels = [row.label for row in variants("cpu")]
    assert len(labels) == len(set(labels)) == 19


def test_an_unknown_size_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no size 'cpus'.*Did you mean 'cpu'"):
        parse_size("cpus")
