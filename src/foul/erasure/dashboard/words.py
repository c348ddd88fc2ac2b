"""Facts of the ledger in words: dates, rounds, hashes."""

from collections.abc import Sequence
from datetime import date

from foul.erasure.records import Request


def due_words(request: Request, today: date) -> str:
    """How long there is until a request must be served; nothing if it is closed."""
    if not request.open:
        return ""
    days = (date.fromisoformat(request.due) - today).days
    if days < 0:
        return f"overdue by {_days(-days)}"
    return "today" if days == 0 else f"in {_days(days)}"


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


def spans(rounds: Sequence[Sequence[int]]) -> str:
    """`1-5, 7`."""
    parts = [f"{first}" if first == last else f"{first}-{last}" for first, last in rounds]
    return ", ".join(parts) or "none"


def shortened(digits: str) -> str:
    """The beginning of a hash."""
    return digits[:12]
