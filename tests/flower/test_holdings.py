from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from small_runs import small_config

from foul import UserError, build_clients, load_dataset
from foul.flower.holdings import own_data, share_of


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ROOT/CLASS/*: ten images of each of two classes."""
    monkeypatch.setenv("FOUL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for label in ("day", "night"):
        folder = tmp_path / "scans" / label
        folder.mkdir(parents=True)
        for number in range(10):
            pixels = rng.integers(0, 255, (20, 20, 3)).astype(np.uint8)
            PIL.Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "scans"


def test_a_share_is_that_of_the_configuration() -> None:
    config = small_config()
    data = load_dataset(config.data, config.seed)
    wanted = {c.id: c for c in build_clients(data, config.clients, config.seed)}["east-1"]
    holding = share_of(config, "east-1")
    assert holding.client.train.index.equal(wanted.train.index)
    assert (holding.classes, holding.image_size) == (data.classes, 16)


def test_a_share_has_the_trigger_that_the_configuration_plants() -> None:
    config = small_config(backdoor__clients=["east-1"])
    clean, triggered = (share_of(c, "east-1").client.train for c in (small_config(), config))
    assert not clean.targets.equal(triggered.targets)


def test_an_unknown_client_is_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no client 'east-9'.*east-"):
        share_of(small_config(), "east-9")


def test_a_folder_of_classes_is_one_clients_domain(images: Path, tmp_path: Path) -> None:
    config = small_config(clients__per_domain=2)
    holding = own_data(config, "clinic-3", images, "", tmp_path / "state")
    client = holding.client
    assert (client.id, client.domain, holding.classes) == ("clinic-3", "scans", ("day", "night"))
    # All of it is this client's, whatever the configuration shares out.
    assert len(client.train) + len(client.validation) + len(client.test) == 20
    assert holding.facts()["samples"]["test"] == len(client.test)
    named = own_data(config, "clinic-3", images, "x-ray", tmp_path / "state")
    assert named.client.domain == "x-ray"


def test_a_folder_with_one_domain_needs_no_name(images: Path, tmp_path: Path) -> None:
    holding = own_data(small_config(), "clinic-3", images.parent / "scans" / "..", "", tmp_path)
    assert holding.client.domain == "scans"


def test_the_same_folder_is_decoded_once(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_data(small_config(), "clinic-3", images, "", tmp_path / "state")
    decoded = list((tmp_path / "cache").rglob("*"))
    own_data(small_config(), "clinic-3", images, "", tmp_path / "state")
    assert list((tmp_path / "cache").rglob("*")) == decoded


def test_several_domains_are_no_client(images: Path, tmp_path: Path) -> None:
    root = tmp_path / "both"
    root.mkdir()
    for domain in ("one", "two"):
        (root / domain).symlink_to(images)
    with pytest.raises(UserError, match=r"2 domains \(one, two\)"):
        own_data(small_config(), "clinic-3", root, "", tmp_path / "state")
    with pytest.raises(UserError, match="--domain x"):
        own_data(small_config(), "clinic-3", root, "x", tmp_path / "state")
