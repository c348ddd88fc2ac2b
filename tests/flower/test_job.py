from pathlib import Path

import pytest

from foul import Observer
from foul.flower.job import Job, JobLog, Outcome, Replay, current_job


class Told(Observer):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def on_round(self, record: dict[str, object]) -> None:
        self.calls.append(record)

    def on_message(self, text: str) -> None:
        self.calls.append(text)

    def on_stage(self, stage: str, rounds: int, done: int) -> None:
        self.calls.append((stage, rounds, done))

    def on_client(self, task: str, client: str, done: int, total: int) -> None:
        self.calls.append((task, client, done, total))

    def on_work(self, what: str, done: int, total: int) -> None:
        self.calls.append((what, done, total))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job.of(tmp_path / "run")
    job.begin()
    return job


def test_it_lies_beside_the_run_folder(tmp_path: Path, job: Job) -> None:
    assert job.folder.parent == tmp_path
    assert not (tmp_path / "run").exists()


def test_an_observer_is_told_what_the_log_was_told_once(job: Job) -> None:
    log, told = JobLog(job), Told()
    replay = Replay(job, told)
    replay.look()
    log.on_stage("learning", 5, 0)
    log.on_client("learn", "a", 1, 2)
    replay.look()
    log.on_work("decoding", 1, 3)
    log.on_round({"round": 1, "failures": {}})
    log.on_message("lines\nand ü")
    replay.look()
    replay.look()
    assert told.calls == [
        ("learning", 5, 0),
        ("learn", "a", 1, 2),
        ("decoding", 1, 3),
        {"round": 1, "failures": {}},
        "lines\nand ü",
    ]


def test_half_a_line_is_read_when_it_is_whole(job: Job) -> None:
    told = Told()
    replay, file = Replay(job, told), job.folder / "progress.jsonl"
    file.write_text('["on_message", "he')
    replay.look()
    assert told.calls == []
    with file.open("a") as more:
        more.write('llo"]\n')
    replay.look()
    assert told.calls == ["hello"]


def test_only_hooks_of_observers_are_called(job: Job) -> None:
    (job.folder / "progress.jsonl").write_text('["__init__"]\n["on_message", "x"]\n')
    told = Told()
    Replay(job, told).look()
    assert told.calls == ["x"]


def test_outcome_and_run_are_known_when_they_are_written(job: Job) -> None:
    assert job.outcome() is None
    assert job.noted() is None
    job.note("12", "learn digits")
    job.end(Outcome(2, "no luck"))
    assert job.noted() == {"run": "12", "command": "learn digits"}
    assert job.outcome() == Outcome(2, "no luck")
    job.begin()
    assert job.outcome() is None


def test_the_job_that_is_performed_is_known_within(job: Job) -> None:
    assert current_job() is None
    with job.current():
        assert current_job() == job
    assert current_job() is None
