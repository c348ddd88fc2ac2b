"""Hand a command over to a ServerApp, follow it, and end as it ends."""

import json
import os
import shlex
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tomli_w

from foul.config.schema import FlowerConfig
from foul.errors import FoulError, MachineError, UserError
from foul.federation.observer import Observer
from foul.flower.job import Job, Outcome, Replay
from foul.flower.project import write_app

POLL = 0.2
"""Seconds between two looks at a job's folder."""
ASK = 15.0
"""Seconds between two questions to Flower whether its run is still alive: each starts a process."""
PATIENCE = 120.0
"""Seconds that a call of `flwr` may take; two are usual, twenty on a busy machine."""

_UNKNOWN = "Run ID not found"
"""What a SuperLink says of a run that it never had, or had in a database that is gone."""


def require_flower() -> None:
    """
    Raises:
        UserError: Flower is not installed.
    """
    if find_spec("flwr") is None:
        raise UserError("engine=flower needs Flower", "Install it: pip install 'foul[flower]'")


def perform_remotely(
    arguments: Sequence[str], run: Path, config: FlowerConfig, observer: Observer
) -> tuple[str, int]:
    """Have a ServerApp perform this command; answers what it printed, and its exit code.

    A command that a killed caller left running is followed instead of started again.

    Args:
        arguments: the command line without the leading `foul`.
        run: the run folder it works on; the ServerApp must see it under the same path.

    Raises:
        FoulError: what the command failed with; or the run failed, was stopped or cannot start.
    """
    require_flower()
    flower, job = Flower.of(config), Job.of(run)
    command = shlex.join(arguments)
    number = _left_running(job, flower, command, run)
    if number is None:
        number = _start(job, flower, command)
    else:
        observer.on_message(f"Flower run {number} is at it already; following it")
    try:
        outcome = _follow(job, flower, number, observer)
    except BaseException as error:
        # Ctrl-C ends what it started, as it would on one machine.
        if not isinstance(error, FoulError):
            flower.stop(number)
        raise
    output = job.output()
    job.clear()
    if outcome.error:
        failure = FoulError(outcome.error)
        failure.exit_code = outcome.code
        raise failure
    return output, outcome.code


@dataclass(frozen=True)
class Flower:
    """The command `flwr`, for one SuperLink."""

    superlink: str | None
    environment: Mapping[str, str]

    @classmethod
    def of(cls, config: FlowerConfig) -> "Flower":
        own = {"FLWR_HOME": str(config.home)} if config.home else {}
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        return cls(config.superlink, quiet | dict(os.environ) | own)

    def start(self, app: Path, settings: Path) -> str:
        """Start a run of this app; answers its number.

        Raises:
            MachineError: the SuperLink cannot be reached, or refused.
        """
        told = self._run("run", str(app), *self._link, "--run-config", str(settings))
        if not told.get("success"):
            raise MachineError(
                f"Flower did not start the run ({told.get('error-message', 'no reason given')})",
                "Is the SuperLink up, and does FLWR_HOME or flower.home name the config.toml with "
                "its address?",
            )
        return str(told["run-id"])

    def status(self, number: str) -> str:
        """`running`, `finished:failed` and so on; empty if the SuperLink does not answer."""
        told = self._run("list", *self._link, "--run-id", number)
        if _UNKNOWN in str(told.get("error-message", "")):
            return "finished:unknown"
        runs = told.get("runs") or [{}]
        return str(runs[0].get("status", ""))

    def stop(self, number: str) -> None:
        self._run("stop", number, *self._link)

    @property
    def _link(self) -> list[str]:
        return [self.superlink] if self.superlink else []

    def _run(self, *arguments: str) -> dict[str, Any]:
        """What `flwr` answers; that it does not answer is an answer too.

        Raises:
            UserError: there is no `flwr` in this environment.
        """
        program = Path(sysconfig.get_path("scripts")) / "flwr"
        try:
            ended = subprocess.run(
                [str(program), *arguments, "--format", "json"],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return {"error-message": f"`flwr {arguments[0]}` took longer than {PATIENCE:g} s"}
        except OSError as error:
            raise UserError(
                f"{program} cannot be started ({error.strerror})",
                "Install Flower again: pip install --force-reinstall 'foul[flower]'",
            ) from error
        return _last_object(ended.stdout) or {"error-message": ended.stderr.strip()[-300:]}


def _last_object(text: str) -> dict[str, Any]:
    """The JSON object that this text ends with; empty if there is none."""
    start = text.find("{")
    try:
        found = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _left_running(job: Job, flower: Flower, command: str, run: Path) -> str | None:
    """The Flower run that still works on this run folder, if there is one.

    Raises:
        UserError: it performs another command.
    """
    noted = job.noted()
    if noted is None or job.outcome() is not None:
        return None
    number = noted["run"]
    if flower.status(number).startswith("finished"):
        return None
    if _same(noted["command"]) != _same(command):
        raise UserError(
            f"Flower run {number} is working on {run} (foul {noted['command']})",
            f"Wait for it to end, or stop it: flwr stop {number}",
        )
    return number


def _same(command: str) -> list[str]:
    """What decides whether two commands do the same to a run folder."""
    return [word for word in shlex.split(command) if word not in ("--resume", "--quiet", "-q")]


def _start(job: Job, flower: Flower, command: str) -> str:
    job.begin()
    with tempfile.TemporaryDirectory(prefix="foul-app-") as place:
        app, settings = Path(place) / "app", Path(place) / "run.toml"
        write_app(app)
        told = {"command": command, "cwd": os.getcwd(), "job": str(job.folder)}
        settings.write_text(tomli_w.dumps(told), encoding="utf-8")
        try:
            number = flower.start(app, settings)
        except BaseException:
            job.clear()
            raise
    job.note(number, command)
    return number


def _follow(job: Job, flower: Flower, number: str, observer: Observer) -> Outcome:
    """Show the job's progress until it is over.

    Raises:
        MachineError: its process died, or somebody stopped it.
    """
    replay, asked, answers = Replay(job, observer), time.monotonic(), True
    while True:
        outcome = job.outcome()
        replay.look()
        if outcome is not None:
            return outcome
        if time.monotonic() > asked + ASK:
            status, asked = flower.status(number), time.monotonic()
            if answers and not status:
                observer.on_message("The SuperLink does not answer; waiting for it to come back")
            answers = bool(status)
            # It may have ended since the look above.
            if status.startswith("finished") and job.outcome() is None:
                job.clear()
                raise MachineError(
                    f"Flower run {number} ended without an outcome ({status})",
                    f"`flwr log {number}` shows why; the same command (learn: with --resume) "
                    "continues.",
                )
        time.sleep(POLL)
