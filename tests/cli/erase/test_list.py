import re
from datetime import timedelta
from pathlib import Path

import pytest

from cli.conftest import Foul
from foul.erasure.clock import today


def test_looking_at_a_run_without_requests(foul: Foul, run: Path) -> None:
    assert "foul erase request" in foul("erase", "list", run).error()
    assert not (run / "erasure").exists()


def test_due_dates_in_the_list(foul: Foul, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foul("erase", "request", run, "--client", "north-1", "--due", today() + timedelta(2))
    assert "(2 days left)" in foul("erase", "list", run).out
    with monkeypatch.context() as patch:
        patch.setattr("foul.cli.erase.list.today", lambda: today() + timedelta(1))
        assert "(1 day left)" in foul("erase", "list", run).out
    later = today() + timedelta(5)
    monkeypatch.setattr("foul.cli.erase.list.today", lambda: later)
    monkeypatch.setenv("FORCE_COLOR", "1")
    late = foul("erase", "list", run).out
    assert "(3 days overdue)" in late
    assert re.search(r"\x1b\[1;31m[^\x1b]*3 days overdue", late)
    assert foul("erase", "list", run, "--json").json[0]["overdue"]
