from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from foul.erasure.participation import participation, spans, told


@given(st.sets(st.integers(1, 60)))
def test_spans_are_the_rounds_and_no_two_touch(rounds: set[int]) -> None:
    found = spans(sorted(rounds))
    assert [n for first, last in found for n in range(first, last + 1)] == sorted(rounds)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(found))


def test_who_was_asked_and_answered_took_part() -> None:
    records = [
        {"round": 1, "costs": {"a": {}, "b": {}}, "failures": {}},
        {"round": 2, "costs": {"a": {}, "b": {}}, "failures": {"b": "NaN"}},
        {"round": 3, "costs": {"a": {}}, "failures": {"b": "away"}},
        {"round": 4, "costs": {"a": {}, "b": {}}, "failures": {}},
    ]
    assert participation(records) == {"a": [(1, 4)], "b": [(1, 1), (4, 4)]}


def test_spans_as_people_write_them() -> None:
    assert told([(1, 3), (5, 5)]) == "1-3, 5"
    assert told([]) == "none"
