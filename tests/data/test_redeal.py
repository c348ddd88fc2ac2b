import pytest
import torch

from foul.data.digits import digits
from foul.data.domains import Domain, Samples
from foul.data.redeal import redealt


def places(samples: Samples) -> set[int]:
    return set(samples.index.tolist())


def two_arrays() -> Domain:
    """A domain whose test samples live in another array."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (30, 4, 4, 3), generator=generator).to(torch.uint8)
    labels = torch.arange(30) % 3
    return Domain("d", Samples.of(images[:20], labels[:20]), Samples.of(images[20:], labels[20:]))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_every_sample_is_dealt_once(share: float) -> None:
    for domain in (digits(28).domains[0], two_arrays()):
        new = redealt(domain, share, seed=3)
        total = len(domain.train) + len(domain.test)
        assert len(new.train) == round(share * total)
        assert places(new.train).isdisjoint(places(new.test))
        assert len(places(new.train) | places(new.test)) == total


def test_the_seed_decides_and_the_place_of_a_sample_stays() -> None:
    one, same, other = (redealt(two_arrays(), 0.5, seed) for seed in (1, 1, 2))
    assert places(one.train) == places(same.train) != places(other.train)
    # The same place is the same image, on either side.
    first = {int(i): one.train.images[i] for i in one.train.index}
    for place in places(other.test) & first.keys():
        assert bool((other.test.images[place] == first[place]).all())
        assert other.test.labels[place] == one.train.labels[place]


def test_there_is_something_on_both_sides() -> None:
    for share in (0.001, 0.999):
        new = redealt(two_arrays(), share, seed=0)
        assert min(len(new.train), len(new.test)) == 1
