from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.erasure.clock import months_later, now, today

days = st.dates(date(2000, 1, 1), date(2100, 1, 1))


@given(days, st.integers(1, 24))
def test_months_later_is_the_same_day_or_the_last_of_the_month(day: date, months: int) -> None:
    later = months_later(day, months)
    assert (later.year * 12 + later.month) - (day.year * 12 + day.month) == months
    if later.day != day.day:
        assert later.day < day.day
        assert (later + timedelta(1)).day == 1


@pytest.mark.parametrize(
    ("day", "later"), [("2027-01-31", "2027-02-28"), ("2026-12-05", "2027-01-05")]
)
def test_one_month_as_people_count(day: str, later: str) -> None:
    assert months_later(date.fromisoformat(day), 1) == date.fromisoformat(later)


def test_now_is_in_utc_and_of_today() -> None:
    moment = datetime.fromisoformat(now())
    assert moment.utcoffset() == timedelta(0)
    assert abs((moment.date() - today()).days) <= 1
