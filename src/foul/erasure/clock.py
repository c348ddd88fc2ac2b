"""The time that entries carry, and the day until which a request must be served."""

import calendar
from datetime import UTC, date, datetime


def now() -> str:
    """This moment in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def today() -> date:
    """The day it is in UTC."""
    return datetime.now(UTC).date()


def months_later(day: date, months: int) -> date:
    """The same day so many months later; the month's last day where there is no such day."""
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))
