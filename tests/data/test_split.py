import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foul.data.split import official_test_rows, share_out, stratified_sample


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.data())
def test_a_sample_keeps_the_share_of_each_stratum(strata: list[int], data: st.DataObject) -> None:
    labels = np.array(strata)
    count = data.draw(st.integers(0, len(labels)))
    rows = stratified_sample(labels, count, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist())) == count
    assert (np.diff(rows) > 0).all()
    for label in set(strata):
        exact = count * (labels == label).mean()
        assert abs((labels[rows] == label).sum() - exact) < 1


@given(st.integers(0, 1000), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
def test_shares_add_up(total: int, weights: list[float]) -> None:
    shares = share_out(total, np.array(weights))
    assert shares.sum() == total
    assert np.abs(shares - total * np.array(weights) / sum(weights)).max() < 1 + 1e-6


def test_a_sample_depends_on_the_generator() -> None:
    labels = np.zeros(100, np.int64)
    first = stratified_sample(labels, 20, np.random.default_rng(1))
    assert (first == stratified_sample(labels, 20, np.random.default_rng(1))).all()
    assert (first != stratified_sample(labels, 20, np.random.default_rng(2))).any()


def test_official_parts_are_told_by_all_file_names() -> None:
    rows = official_test_rows(["m/0/train_1.jpg", "m/0/test_1.jpg", "m/1/test_2.jpg"])
    assert rows is not None
    assert rows.tolist() == [1, 2]
    assert official_test_rows(["m/0/train_1.jpg", "m/0/other.jpg"]) is None
    assert official_test_rows(["m/0/train_1.jpg", "m/0/train_2.jpg"]) is None
