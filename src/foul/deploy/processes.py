"""Processes by their number and their start time, because numbers are given again."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

MARK = "FOUL_FEDERATION_PROCESS"
"""An environment variable that everything below a federation inherits: its folder."""


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None if it is gone.

    A zombie is gone: it only waits for its parent to notice.
    """
    try:
        # The name in parentheses may contain spaces; the state follows it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def seconds_since(started: int) -> float:
    """How long ago this start time was."""
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return uptime - started / os.sysconf("SC_CLK_TCK")


def marked(mark: str) -> list[int]:
    """Processes of this user that were started below the federation with this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(folder.name)
        if wanted in variables and pid != os.getpid() and start_time(pid) is not None:
            found.append(pid)
    return found


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def gone(pids: Iterable[int], within: float) -> bool:
    """Wait until all of these have ended; whether they have."""
    deadline = time.monotonic() + within
    left = list(pids)
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if start_time(pid) is not None]
        if left:
            time.sleep(0.05)
    return not left


def stop(pids: Iterable[int], patience: float) -> None:
    """Ask these processes to end; after `patience` seconds, end them."""
    pids = list(pids)
    send(signal.SIGTERM, pids)
    if not gone(pids, patience):
        send(signal.SIGKILL, pids)
        gone(pids, 5)
