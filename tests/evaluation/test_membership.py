import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.evaluation.membership import loss_auc

# Few values, so that ties are common.
losses = st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0, 1e9]), min_size=1, max_size=12)


@given(losses, losses)
def test_it_counts_pairs(members: list[float], others: list[float]) -> None:
    pairs = [(a < b) + 0.5 * (a == b) for a in members for b in others]
    assert loss_auc(members, others) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert loss_auc(others, members) == pytest.approx(1 - sum(pairs) / len(pairs), abs=1e-12)


def test_extremes() -> None:
    assert loss_auc([0.1, 0.2], [0.3, 0.4, 0.5]) == 1
    assert loss_auc([9.0], [0.3, 0.4]) == 0
    assert loss_auc([1.0] * 5, [1.0] * 3) == 0.5


@pytest.mark.parametrize(("members", "others"), [([], [1.0]), ([1.0], []), ([], [])])
def test_an_empty_group_cannot_be_attacked(members: list[float], others: list[float]) -> None:
    with pytest.raises(ValueError, match="empty"):
        loss_auc(members, others)
