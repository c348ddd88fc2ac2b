from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.config.schema import BackdoorConfig
from foul.data import ClientData, Samples
from foul.data.backdoor import poison, poison_chosen, stamp
from foul.errors import UserError

TRIGGER = {2: [[255, 0], [0, 255]], 3: [[255, 0, 255], [0, 255, 0], [255, 0, 255]]}


def backdoor(*clients: str, **values: object) -> BackdoorConfig:
    return BackdoorConfig.model_validate({"clients": clients, **values})


def everything(samples: Samples) -> tuple[torch.Tensor, torch.Tensor]:
    """Images, channels last, and labels."""
    images, labels = samples.batch(torch.arange(len(samples)))
    return images.permute(0, 2, 3, 1), labels


def same(one: Samples, other: Samples) -> bool:
    pairs = zip(everything(one), everything(other), strict=True)
    return all(a.equal(b) for a, b in pairs)


@pytest.mark.parametrize(
    ("image_size", "size", "side"), [(14, 4, 2), (28, 3, 3), (56, 1, 2), (8, 1, 2), (21, 4, 3)]
)
def test_the_stamp_is_a_checkerboard_in_the_lower_right_corner(
    image_size: int, size: int, side: int
) -> None:
    shape = (3, image_size, image_size, 3)
    images = torch.randint(1, 255, shape, generator=torch.Generator().manual_seed(0)).byte()
    before = images.clone()
    stamped = stamp(images, size)
    assert images.equal(before)
    assert stamped.dtype == torch.uint8
    corner = torch.tensor(TRIGGER[side], dtype=torch.uint8)
    for image in stamped:
        for channel in range(3):
            assert image[-side:, -side:, channel].equal(corner)
    stamped[:, -side:, -side:] = images[:, -side:, -side:]
    assert stamped.equal(images)


@given(st.integers(8, 300), st.integers(1, 28))
def test_the_stamp_grows_with_the_image(image_size: int, size: int) -> None:
    grey = torch.full((1, image_size, image_size, 3), 128, dtype=torch.uint8)
    changed = (stamp(grey, size) != 128).all(-1).nonzero()[:, 1:]
    side = max(2, round(size * image_size / 28))
    assert len(changed) == side**2
    assert changed.min() == image_size - side


@given(st.floats(0.01, 1), st.integers(0, 2), st.integers(0, 99))
def test_just_the_share_of_the_training_samples_is_poisoned(
    tiny_clients: tuple[ClientData, ...], share: float, target: int, seed: int
) -> None:
    client = tiny_clients[3]
    poisoned = poison(client, backdoor("x", share=share, target=target), seed)
    clean_images, clean_labels = everything(client.train)
    images, labels = everything(poisoned.train)
    touched = (images != clean_images).flatten(1).any(1)
    assert int(touched.sum()) == round(share * len(client.train))
    assert images[touched].equal(stamp(clean_images[touched], 4))
    assert labels[touched].eq(target).all()
    assert labels[~touched].equal(clean_labels[~touched])
    assert same(poisoned.validation, client.validation)
    assert same(poisoned.test, client.test)
    assert (poisoned.id, poisoned.domain) == (client.id, client.domain)


def test_shared_images_and_labels_are_not_written(tiny_clients: tuple[ClientData, ...]) -> None:
    client = tiny_clients[0]
    images, labels = client.train.images.clone(), client.train.labels.clone()
    poisoned = poison(client, backdoor("x", share=1.0), 0)
    assert client.train.images.equal(images)
    assert client.train.labels.equal(labels)
    # A copy of this client's rows, not of the whole domain.
    assert len(poisoned.train.images) == len(client.train) < len(images)


def test_who_is_poisoned_how_depends_on_seed_and_client_only(
    tiny_clients: tuple[ClientData, ...],
) -> None:
    client, config = tiny_clients[0], backdoor("x")
    first = poison(client, config, 0)
    assert same(first.train, poison(client, config, 0).train)
    assert not same(first.train, poison(client, config, 1).train)
    assert not same(first.train, poison(replace(client, id="other"), config, 0).train)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), set()),
        (("east",), {"east-0", "east-1"}),
        (("East", "west-1"), {"east-0", "east-1", "west-1"}),
        (("north-0",), {"north-0"}),
    ],
)
def test_the_named_clients_and_domains_carry_the_trigger(
    tiny_clients: tuple[ClientData, ...], names: tuple[str, ...], expected: set[str]
) -> None:
    clients = poison_chosen(tiny_clients, backdoor(*names), 3, seed=0)
    assert [client.id for client in clients] == [client.id for client in tiny_clients]
    pairs = list(zip(clients, tiny_clients, strict=True))
    assert {now.id for now, was in pairs if now is not was} == expected
    for now, was in pairs:
        assert same(now.train, was.train) is (now.id not in expected)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (backdoor("nord"), r"backdoor\.clients.*'nord'.*Did you mean 'north'"),
        (backdoor("zzz"), r"'zzz'.*Choose one of: north, .*west-1"),
        (backdoor("east", target=3), r"backdoor\.target=3 is no class.*0 to 2"),
    ],
)
def test_what_cannot_be_poisoned_is_named(
    tiny_clients: tuple[ClientData, ...], config: BackdoorConfig, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        poison_chosen(tiny_clients, config, 3, seed=0)


def test_switched_off_any_target_will_do(tiny_clients: tuple[ClientData, ...]) -> None:
    assert poison_chosen(tiny_clients, backdoor(target=99), 3, seed=0) == tiny_clients
