import pytest
from factories import learning

from foul.learning.going_on import RATE, going_on, staying_fixed
from foul.learning.rounds import rate_scale


@pytest.mark.parametrize("rate", [0.5, RATE])
def test_rates_are_a_constant_share_and_nothing_else_changes(rate: float) -> None:
    was = learning(
        rounds=9,
        momentum=0.3,
        l2u={"generator_rate": 0.3, "mid_rate": 0.7, "alpha_k": 0.4},
        supervised={"rate": 0.9, "epochs": 3},
    )
    now = going_on(was, 4, rate)
    assert [rate_scale(now, round) for round in (1, 2, 4, 100)] == [1.0] * 4
    assert now.l2u.generator_rate == 0.3 * rate
    assert now.l2u.mid_rate == 0.7 * rate
    assert now.supervised.rate == 0.9 * rate
    expected = was.model_dump() | {"rounds": 4, "schedule": "constant"}
    expected["l2u"] |= {"generator_rate": 0.3 * rate, "mid_rate": 0.7 * rate}
    expected["supervised"] |= {"rate": 0.9 * rate}
    assert now.model_dump() == expected
    assert was.schedule == "cosine"


def test_fixed_statistics_stay_fixed_from_the_first_round_on() -> None:
    for after, stays in ((0, 0), (1, -1), (8, -1), (-1, -1)):
        was = learning(fix_statistics_after=after)
        assert staying_fixed(was) == going_on(was, 3).fix_statistics_after == stays
