import os
import re
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from erasure.dashboard.example import new_store

from cli.conftest import Foul


def test_a_run_without_requests_is_named(foul: Foul, tmp_path: Path) -> None:
    line = foul("erase", "serve", tmp_path).error()
    assert "is not a run folder" in line


def test_other_machines_are_let_in_only_if_asked(foul: Foul, tmp_path: Path) -> None:
    new_store(tmp_path / "run")
    line = foul("erase", "serve", tmp_path / "run", "--host", "0.0.0.0").error()
    assert "--allow-remote" in line


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    new_store(tmp_path / "run")
    command = [sys.executable, "-m", "foul", "erase", "serve", str(tmp_path / "run"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.match(r"Open (http://127\.0\.0\.1:\d+/\?token=\S+)", process.stdout.readline())
    assert found
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    assert b"north-0" in browser.open(found[1], timeout=10).read()
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert err == ""
    assert "token" not in out
