import json
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from foul import FoulError, MachineError, Observer, UserError
from foul.config.schema import FlowerConfig
from foul.flower import driver
from foul.flower.driver import Flower, perform_remotely
from foul.flower.job import Job, JobLog, Outcome

Behaviour = Callable[[Job], None]
Submit = Callable[..., tuple[str, int]]
DONE = ("42\n", 0)


class FakeFlower:
    """A SuperLink that performs the command when it is asked how it is, or at once."""

    def __init__(self, behaviour: Behaviour, state: str = "running") -> None:
        self.behaviour, self.state = behaviour, state
        self.started: list[dict[str, str]] = []
        self.stopped: list[str] = []

    def start(self, app: Path, settings: Path) -> str:
        import tomllib

        assert (app / "pyproject.toml").is_file()
        self.started.append(tomllib.loads(settings.read_text()))
        self.behaviour(Job(Path(self.started[-1]["job"])))
        return "77"

    def status(self, number: str) -> str:
        assert number == "77"
        return self.state

    def stop(self, number: str) -> None:
        self.stopped.append(number)


@pytest.fixture
def submit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Submit:
    monkeypatch.setattr(driver, "ASK", 0.0)
    monkeypatch.setattr(driver, "POLL", 0.01)

    def submit(
        flower: FakeFlower, *words: str, observer: Observer | None = None
    ) -> tuple[str, int]:
        monkeypatch.setattr(Flower, "of", lambda config: flower)
        return perform_remotely(words, tmp_path / "run", FlowerConfig(), observer or Observer())

    return submit


def good(job: Job) -> None:
    JobLog(job).on_message("on it")
    (job.folder / "output.txt").write_text("42\n")
    job.end(Outcome(0))


def test_what_the_command_printed_is_the_answer(submit: Submit, tmp_path: Path) -> None:
    told: list[str] = []

    class Told(Observer):
        def on_message(self, text: str) -> None:
            told.append(text)

    flower = FakeFlower(good)
    assert submit(flower, "learn", "my config.toml", "--out", "run", observer=Told()) == DONE
    assert told == ["on it"]
    assert flower.started[0]["command"] == "learn 'my config.toml' --out run"
    assert flower.started[0]["cwd"] == os.getcwd()
    # Nothing is left beside the run folder.
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_printed_and_failed_does_both_here(submit: Submit, tmp_path: Path) -> None:
    def unmet(job: Job) -> None:
        (job.folder / "output.txt").write_text("The policy is not met.\n")
        job.end(Outcome(2))

    assert submit(FakeFlower(unmet), "erase", "verify") == ("The policy is not met.\n", 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [1, 2])
def test_a_failed_command_fails_here_with_its_code(submit: Submit, code: int) -> None:
    flower = FakeFlower(lambda job: job.end(Outcome(code, "No luck. Try again.")))
    with pytest.raises(FoulError, match=r"^No luck\. Try again\.$") as caught:
        submit(flower, "learn")
    assert caught.value.exit_code == code
    assert flower.stopped == []


def test_a_server_app_that_died_is_a_failure(submit: Submit) -> None:
    flower = FakeFlower(lambda job: None, "finished:failed")
    with pytest.raises(MachineError, match=r"run 77 ended without an outcome.*finished:failed"):
        submit(flower, "learn")


def test_a_superlink_that_does_not_answer_is_waited_for(submit: Submit) -> None:
    job_of: list[Job] = []
    flower = FakeFlower(job_of.append, "")

    def later(number: str) -> str:
        good(job_of[0])
        return ""

    told: list[str] = []

    class Told(Observer):
        def on_message(self, text: str) -> None:
            told.append(text)

    flower.status = later  # type: ignore[method-assign]
    assert submit(flower, "learn", observer=Told()) == DONE
    assert "SuperLink does not answer" in told[0]


def test_a_command_that_a_killed_caller_left_is_followed(submit: Submit, tmp_path: Path) -> None:
    job = Job.of(tmp_path / "run")
    job.begin()
    job.note("77", "learn a.toml --out run")
    flower = FakeFlower(good)

    def later(number: str) -> str:
        good(job)
        return "running"

    flower.status = later  # type: ignore[method-assign]
    assert submit(flower, "learn", "a.toml", "--out", "run", "--resume") == DONE
    assert flower.started == []


def test_another_command_on_a_busy_run_is_refused(submit: Submit, tmp_path: Path) -> None:
    job = Job.of(tmp_path / "run")
    job.begin()
    job.note("77", "learn a.toml --out run")
    with pytest.raises(UserError, match=r"run 77 is working on .*foul learn a\.toml.*flwr stop 77"):
        submit(FakeFlower(good), "unlearn", "run")


@pytest.mark.parametrize("state", ["finished:failed", "finished:unknown"])
def test_a_command_whose_run_has_died_is_started_again(
    submit: Submit, tmp_path: Path, state: str
) -> None:
    job = Job.of(tmp_path / "run")
    job.begin()
    job.note("77", "learn a.toml --out run")
    flower = FakeFlower(good, state)
    assert submit(flower, "learn", "a.toml", "--out", "run", "--resume") == DONE
    assert len(flower.started) == 1


def test_who_interrupts_the_command_stops_its_run(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foul.flower.driver.time.sleep", interrupt)
    flower = FakeFlower(lambda job: None)
    with pytest.raises(KeyboardInterrupt):
        submit(flower, "learn")
    assert flower.stopped == ["77"]


def test_without_flower_there_is_one_clear_line(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'foul\[flower\]'"):
        submit(FakeFlower(good), "learn")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Path]:
    """Puts a program in the place of `flwr`; it notes how it was called."""

    def put(says: str, code: int = 0) -> Path:
        note = tmp_path / "called"
        file = tmp_path / "flwr"
        call = f'echo "$@ home=$FLWR_HOME" > {note}'
        file.write_text(f'#!/bin/sh\n{call}\ncat <<"END"\n{says}\nEND\nexit {code}\n')
        file.chmod(0o755)
        monkeypatch.setattr("foul.flower.driver.sysconfig.get_path", lambda name: str(tmp_path))
        return note

    return put


def test_flower_is_asked_by_its_command(program: Callable[..., Path], tmp_path: Path) -> None:
    flower = Flower.of(FlowerConfig(superlink="site", home=tmp_path))
    note = program('Successfully started\n{"success": true, "run-id": "5"}')
    assert flower.start(Path("app"), Path("x.toml")) == "5"
    assert note.read_text() == (f"run app site --run-config x.toml --format json home={tmp_path}\n")
    program(json.dumps({"success": True, "runs": [{"status": "finished:failed"}]}))
    assert flower.status("5") == "finished:failed"
    assert note.read_text().startswith("list site --run-id 5 --format json")


def test_a_superlink_that_cannot_be_reached_is_named(program: Callable[..., Path]) -> None:
    flower = Flower.of(FlowerConfig())
    program('{"success": false, "error-message": "Connection refused"}', 1)
    with pytest.raises(MachineError, match=r"Connection refused.*FLWR_HOME"):
        flower.start(Path("app"), Path("x.toml"))
    program('{"success": false, "error-message": "[code: 16] Run ID not found."}', 1)
    assert flower.status("5") == "finished:unknown"
    program("no JSON at all", 1)
    assert flower.status("5") == ""


def test_a_flwr_that_hangs_is_given_up(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program("{}")
    monkeypatch.setattr(driver, "PATIENCE", 0.2)
    hanging = Path(sysconfig.get_path("scripts")) / "flwr"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    flower = Flower.of(FlowerConfig())
    with pytest.raises(MachineError, match=r"`flwr run` took longer than 0\.2 s.*SuperLink up"):
        flower.start(Path("app"), Path("x.toml"))
    # Of a run that goes on, it only says that the SuperLink does not answer.
    assert flower.status("5") == ""
    flower.stop("5")


def test_a_flwr_that_is_not_there_is_named(program: Callable[..., Path], tmp_path: Path) -> None:
    program("{}")
    (tmp_path / "flwr").unlink()
    with pytest.raises(UserError, match=r"flwr cannot be started.*foul\[flower\]"):
        Flower.of(FlowerConfig()).start(Path("app"), Path("x.toml"))
