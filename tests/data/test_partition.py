from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.data.partition import dirichlet, iid, uneven
from foul.data.split import Rows
from foul.errors import UserError

labels_and_clients = st.integers(1, 8).flatmap(
    lambda clients: st.tuples(
        st.lists(st.integers(0, 5), min_size=2 * clients, max_size=80), st.just(clients)
    )
)
Skewed = Callable[[Rows, int, float, np.random.Generator], list[Rows]]


def require_partition(shares: list[Rows], samples: int, clients: int) -> None:
    assert len(shares) == clients
    assert sorted(np.concatenate(shares).tolist()) == list(range(samples))


@given(labels_and_clients, st.integers(0, 99))
def test_iid_shares_are_even_in_size_and_class(case: tuple[list[int], int], seed: int) -> None:
    labels, clients = np.array(case[0]), case[1]
    shares = iid(labels, clients, np.random.default_rng(seed))
    require_partition(shares, len(labels), clients)
    assert np.ptp([len(share) for share in shares]) <= 1
    for label in np.unique(labels):
        assert np.ptp([(labels[share] == label).sum() for share in shares]) <= 1


@pytest.mark.parametrize("skewed", [dirichlet, uneven])
@given(labels_and_clients, st.floats(1e-6, 100), st.integers(0, 99))
def test_skewed_shares_are_a_partition_with_two_samples_each(
    skewed: Skewed, case: tuple[list[int], int], alpha: float, seed: int
) -> None:
    labels, clients = np.array(case[0]), case[1]
    shares = skewed(labels, clients, alpha, np.random.default_rng(seed))
    require_partition(shares, len(labels), clients)
    assert min(len(share) for share in shares) >= 2


def test_a_small_alpha_skews_labels_and_a_large_one_does_not() -> None:
    labels = np.arange(2000) % 10

    def skew(alpha: float) -> float:
        shares = dirichlet(labels, 5, alpha, np.random.default_rng(0))
        counts = np.array([np.bincount(labels[share], minlength=10) for share in shares])
        return float((counts.max(0) / counts.sum(0)).mean())

    assert skew(0.05) > 0.7
    assert skew(1000.0) < 0.25


def test_a_small_alpha_makes_sizes_uneven_and_a_large_one_does_not() -> None:
    labels = np.zeros(1000, np.int64)

    def largest(alpha: float) -> int:
        return max(len(share) for share in uneven(labels, 5, alpha, np.random.default_rng(3)))

    assert largest(0.1) > 500
    assert largest(10000.0) < 220


def test_too_few_samples_name_the_owner_the_count_and_the_remedy() -> None:
    labels = np.zeros(3, np.int64)
    with pytest.raises(UserError, match=r"Domain 'ink' has 3 images.*5 clients.*per_domain to 3"):
        iid(labels, 5, np.random.default_rng(0), "Domain 'ink'")
    with pytest.raises(UserError, match=r"3 images.*2 clients \(2 each.*per_domain to 1 or less"):
        uneven(labels, 2, 1.0, np.random.default_rng(0))
    with pytest.raises(UserError, match="too few"):
        dirichlet(labels, 2, 1.0, np.random.default_rng(0))
