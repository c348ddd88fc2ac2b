"""A command that a ServerApp performs for somebody who waits: what passes between the two.

job.json         the Flower run and the command
progress.jsonl   what an observer was told, one call per line
output.txt       what the command printed
outcome.json     its exit code and its error, when it is over
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foul.federation.observer import Observer
from foul.runs.atomic import write_text

_HOOKS = ("on_stage", "on_client", "on_round", "on_message", "on_work")

_CURRENT: ContextVar["Job | None"] = ContextVar("job", default=None)
"""The job that this process performs, if it does."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    error: str = ""


@dataclass(frozen=True)
class Job:
    """The folder of one command, beside the run folder it works on."""

    folder: Path

    @classmethod
    def of(cls, run: Path) -> "Job":
        place = run.expanduser().absolute()
        return cls(place.parent / f".{place.name}.job")

    def begin(self) -> None:
        """An empty folder: what an earlier command left is gone."""
        self.clear()
        self.folder.mkdir(parents=True)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def note(self, run: str, command: str) -> None:
        """Remember which Flower run performs which command."""
        write_text(self.folder / "job.json", json.dumps({"run": run, "command": command}) + "\n")

    def noted(self) -> dict[str, str] | None:
        """What `note` noted, if it did."""
        found: dict[str, str] | None = self._read("job.json")
        return found

    def end(self, outcome: Outcome) -> None:
        text = json.dumps({"code": outcome.code, "error": outcome.error})
        write_text(self.folder / "outcome.json", text + "\n")

    def outcome(self) -> Outcome | None:
        """How it ended, if it has."""
        found = self._read("outcome.json")
        return None if found is None else Outcome(**found)

    def output(self) -> str:
        file = self.folder / "output.txt"
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def _read(self, name: str) -> Any:
        file = self.folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    @contextmanager
    def current(self) -> Iterator[None]:
        """Within, this is the job that is performed."""
        before = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(before)


def current_job() -> Job | None:
    """The job that this process performs, if it does."""
    return _CURRENT.get()


class JobLog(Observer):
    """Writes down what it is told, for whoever waits."""

    def __init__(self, job: Job) -> None:
        self._file = job.folder / "progress.jsonl"

    def on_stage(self, stage: str, rounds: int, done: int) -> None:
        self._write("on_stage", stage, rounds, done)

    def on_client(self, task: str, client: str, done: int, total: int) -> None:
        self._write("on_client", task, client, done, total)

    def on_round(self, record: dict[str, Any]) -> None:
        self._write("on_round", record)

    def on_message(self, text: str) -> None:
        self._write("on_message", text)

    def on_work(self, what: str, done: int, total: int) -> None:
        self._write("on_work", what, done, total)

    def _write(self, *call: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(call) + "\n")


class Replay:
    """Tells an observer what a `JobLog` was told since the last look."""

    def __init__(self, job: Job, observer: Observer) -> None:
        self._file, self._observer = job.folder / "progress.jsonl", observer
        self._read = 0

    def look(self) -> None:
        if not self._file.is_file():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    # Still being written.
                    return
                self._read += len(line)
                hook, *arguments = json.loads(line)
                if hook in _HOOKS:
                    getattr(self._observer, hook)(*arguments)
