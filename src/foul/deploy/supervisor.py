"""A small process that keeps the processes of a federation alive.

It starts what the plan names, restarts what ends (after a delay that grows, because a SuperLink
refuses a node for up to a minute after it was killed), and stops everything when it is told to.
Killed itself, it leaves them running; the next supervisor takes them over by its notes.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan, Process, search_path
from foul.deploy.processes import MARK, marked, seconds_since, start_time, stop
from foul.runs.atomic import write_text

PAUSE = 0.2
"""Seconds between looks."""
DELAYS = (1.0, 5.0, 10.0)
"""Seconds before a process is started again; the last holds for all further times."""
STEADY = 60.0
"""A process that ran for so many seconds is well: its next restart is the first again."""
PATIENCE = 10.0
"""Seconds a process has to end by itself."""
START = 60.0
"""Seconds the supervisor itself has to start."""


@dataclass
class Note:
    """What the supervisor knows of a process.

    Attributes:
        pid: its number, 0 while it does not run.
        started: its start time in clock ticks; with the number, it names the process.
        restarts: how often it ended and had to be started again.
        exit_code: how it ended last; None if it has not, or was not our child.
    """

    pid: int = 0
    started: int = 0
    restarts: int = 0
    exit_code: int | None = None

    @property
    def alive(self) -> bool:
        return self.pid > 0 and start_time(self.pid) == self.started


def read_notes(path: Path) -> dict[str, Note]:
    """The notes of all processes and of the supervisor itself; none if it never ran."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {name: Note(**note) for name, note in values.items()}


class Supervisor:
    """Looks after one folder's processes."""

    def __init__(self, folder: FederationFolder) -> None:
        self._folder = folder
        self._plan = Plan.read(folder.plan)
        self._notes = {name: n for name, n in read_notes(folder.state).items() if n.alive}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._stopping = False

    def run(self) -> None:
        """Until SIGTERM."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        own = os.getpid()
        self._notes["supervisor"] = Note(own, start_time(own) or 0)
        self._write()
        while not self._stopping:
            if self._look():
                self._write()
            time.sleep(PAUSE)
        self._end_all()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _look(self) -> bool:
        """Note who ended, start who is due; whether anything changed."""
        changed = False
        for process in self._plan.processes:
            note = self._notes.setdefault(process.name, Note())
            if note.pid and not self._lives(process.name, note):
                self._note_end(process.name, note)
                changed = True
            if not note.pid and self._due(process):
                self._start(process, note)
                changed = True
        return changed

    def _lives(self, name: str, note: Note) -> bool:
        child = self._children.get(name)
        if child is not None and child.pid == note.pid:
            return child.poll() is None
        return note.alive

    def _note_end(self, name: str, note: Note) -> None:
        child = self._children.pop(name, None)
        note.exit_code = child.returncode if child else None
        with suppress(ProcessLookupError, PermissionError):
            # What it started must not outlive it.
            os.killpg(note.pid, signal.SIGKILL)
        well = seconds_since(note.started) > STEADY
        count = 0 if well else self._failures.get(name, 0)
        delay = DELAYS[min(count, len(DELAYS) - 1)]
        self._failures[name] = count + 1
        self._not_before[name] = time.monotonic() + delay
        note.pid = note.started = 0
        note.restarts += 1
        _say(f"{name} ended (exit code {note.exit_code}), will be started again in {delay:.0f} s")

    def _due(self, process: Process) -> bool:
        if process.waits_for and not Path(process.waits_for).exists():
            return False
        if (self._folder.held / process.name).exists():
            return False
        return time.monotonic() >= self._not_before.get(process.name, 0)

    def _start(self, process: Process, note: Note) -> None:
        environment = {
            **os.environ,
            "PATH": search_path(),
            **process.environment,
            MARK: str(self._folder.path),
            "PYTHONUNBUFFERED": "1",
        }
        with self._folder.log(process.name).open("ab") as log:
            child = subprocess.Popen(
                process.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._folder.path,
                start_new_session=True,
            )
        self._children[process.name] = child
        note.pid, note.started = child.pid, start_time(child.pid) or 0
        _say(f"{process.name} started, process {child.pid}")

    def _end_all(self) -> None:
        """Nodes first, so that they can say goodbye to the SuperLink."""
        for rank in sorted({p.rank for p in self._plan.processes}, reverse=True):
            names = [p.name for p in self._plan.processes if p.rank == rank]
            alive = [self._notes[n].pid for n in names if self._notes.get(n, Note()).alive]
            stop(alive, PATIENCE)
        stop(marked(str(self._folder.path)), PATIENCE)
        self._folder.state.unlink(missing_ok=True)
        _say("all stopped")

    def _write(self) -> None:
        values = {name: asdict(note) for name, note in self._notes.items()}
        write_text(self._folder.state, json.dumps(values, indent=2))


def _say(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)


def launch(folder: FederationFolder) -> bool:
    """Start the supervisor of this folder, which outlives us; False if there is one already, or it
    does not start in time."""
    with folder.log("supervisor").open("ab") as log:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "foul.deploy.supervisor", str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, MARK: str(folder.path)},
                check=False,
                timeout=START,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def main() -> None:
    """`python -m foul.deploy.supervisor FOLDER` leaves a supervisor behind and ends; with
    --foreground it stays, for systemd. Exit code 1 if another one looks after the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--foreground", action="store_true")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    folder = FederationFolder.open(given.folder)
    os.environ[MARK] = str(folder.path)
    with folder.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another supervisor looks after this folder")
        supervisor = Supervisor(folder)
        if given.foreground:
            supervisor.run()
        elif os.fork() == 0:
            # Nobody's child, nobody's terminal; the lock comes along.
            os.setsid()
            supervisor.run()


if __name__ == "__main__":
    main()
