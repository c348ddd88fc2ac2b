"""Processes are known by number and start time; whatever carries the mark can be found."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from foul.deploy.processes import MARK, gone, marked, seconds_since, start_time, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: "/a/b"}) as process:
        yield process
        process.kill()


def test_the_start_time_is_when_it_started(sleeper: subprocess.Popen[bytes]) -> None:
    started = start_time(sleeper.pid)
    assert started is not None
    assert 0 <= seconds_since(started) < 10


def test_a_process_that_ended_has_no_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    # Not waited for: it is a zombie.
    assert gone([sleeper.pid], 5)
    assert start_time(sleeper.pid) is None
    sleeper.wait()
    assert start_time(sleeper.pid) is None


def test_marked_processes_are_found_by_their_whole_mark(sleeper: subprocess.Popen[bytes]) -> None:
    # The mark is there only once the new program has taken the place of the fork.
    deadline = time.monotonic() + 5
    while sleeper.pid not in marked("/a/b") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert marked("/a/b") == [sleeper.pid]
    assert marked("/a") == []


def test_we_do_not_find_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from foul.deploy.processes import marked; print(marked('/m'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, MARK: "/m"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_deaf_are_killed_after_the_polite_have_gone() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    with (
        subprocess.Popen(
            [sys.executable, "-c", f"{deaf}; time.sleep(60)"], stdout=subprocess.PIPE
        ) as first,
        subprocess.Popen(["sleep", "60"]) as second,
    ):
        assert first.stdout is not None
        first.stdout.readline()
        stop([first.pid, second.pid], 0.3)
        assert first.wait(5) == -signal.SIGKILL
        assert second.wait(5) == -signal.SIGTERM
