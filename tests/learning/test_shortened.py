import pytest
from factories import learning

from foul.learning.shortened import shortened


@pytest.mark.parametrize(
    ("after", "rounds", "expected"), [(8, 30, 8), (8, 15, 4), (8, 1, 1), (0, 7, 0), (-1, 7, -1)]
)
def test_statistics_are_fixed_after_the_same_share_of_rounds(
    after: int, rounds: int, expected: int
) -> None:
    was = learning(rounds=40, patience=5, fix_statistics_after=after)
    now = shortened(was, rounds, usual=30)
    assert now.fix_statistics_after == expected
    changed = {"rounds": rounds, "patience": 0, "fix_statistics_after": expected}
    assert now.model_dump() == was.model_dump() | changed
