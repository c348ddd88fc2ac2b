from datetime import date, timedelta

import pytest

from foul.erasure.dashboard.words import due_words, shortened, spans
from foul.erasure.records import Request

DUE = date(2026, 12, 1)


def request(state: str = "received") -> Request:
    return Request(1, "client:a", ("a",), "", "2026-11-01T00:00:00Z", DUE.isoformat(), state=state)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (9, "in 9 days"),
        (1, "in 1 day"),
        (0, "today"),
        (-1, "overdue by 1 day"),
        (-30, "overdue by 30 days"),
    ],
)
def test_the_clock_is_told_in_words(days: int, words: str) -> None:
    today = DUE - timedelta(days=days)
    assert due_words(request(), today) == words
    assert request().overdue(today) == words.startswith("overdue")


@pytest.mark.parametrize("state", ["done", "withdrawn"])
def test_a_closed_request_has_no_clock(state: str) -> None:
    assert due_words(request(state), DUE + timedelta(days=99)) == ""


def test_rounds_are_told_as_spans() -> None:
    assert spans(((1, 5), (7, 7), (9, 12))) == "1-5, 7, 9-12"
    assert spans(()) == "none"


def test_hashes_are_shortened() -> None:
    assert shortened("0123456789abcdef") == "0123456789ab"
