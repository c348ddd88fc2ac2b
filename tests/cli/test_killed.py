"""Real processes, really killed: `foul learn` goes on with the same bits, and leaves no orphans."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from factories import same_bits
from small_runs import running, small_config, without_times

from foul import Config, RunFolder, learn
from foul.config.load import config_to_toml

pytestmark = pytest.mark.slow

ROUNDS = 48
PATIENCE = 300
"""Seconds to wait for anything; far more than it takes."""


def config() -> Config:
    """Rounds of some tenths of a second, two workers; half of the rounds are checkpoints."""
    return small_config(
        workers=2,
        threads=0,
        data__domains=[],
        learning__rounds=ROUNDS,
        learning__patience=0,
        learning__server_momentum=0.5,
        federation__checkpoint_every=2,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return learn(config(), tmp_path_factory.mktemp("killed") / "undisturbed")


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `foul learn` for the run in tmp_path, in a process group of its own."""
    (tmp_path / "config.toml").write_text(config_to_toml(config()))
    started = []

    def begin() -> subprocess.Popen[str]:
        run = tmp_path / "run"
        resume = ["--resume"] if (run / "run.json").exists() else [str(tmp_path / "config.toml")]
        process = subprocess.Popen(
            [sys.executable, "-m", "foul", "learn", *resume, "--out", str(run), "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until this holds or the process has ended."""
    deadline = time.monotonic() + PATIENCE
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.005)


def lines(run: Path) -> int:
    file = run / "rounds.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def children(pid: int) -> list[int]:
    """The processes that this one started, from the process list."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def gone(pids: list[int], within: float = PATIENCE) -> bool:
    deadline = time.monotonic() + within
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(running, pids))


def test_killed_at_any_moment_a_run_ends_with_the_same_bits(
    start: Start, tmp_path: Path, undisturbed: RunFolder
) -> None:
    rng, run = random.Random(0), tmp_path / "run"
    # Right at the start, then after some more rounds and a random part of one.
    moments = [0, 2, 5, 5, 7]
    interrupted = []
    for rounds in moments:
        before = lines(run)
        process = start()
        if rounds:
            # Wait for new lines, because resuming takes back those after the checkpoint.
            wait_for(lambda wanted=before + rounds: lines(run) >= wanted, process)  # type: ignore[misc]
            time.sleep(rng.uniform(0, 0.3))
        else:
            wait_for((run / "run.json").exists, process)
        workers = children(process.pid)
        process.kill()
        interrupted.append(process.wait())
        # They end by themselves when they find their parent gone.
        assert gone(workers)
    assert interrupted == [-signal.SIGKILL] * len(moments)
    last = start()
    assert last.communicate()[1] == ""
    assert last.returncode == 0
    folder = RunFolder.open(run)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert without_times(folder) == without_times(undisturbed)
    assert [record["round"] for record in folder.records()] == list(range(1, ROUNDS + 1))
    assert not list(run.rglob("*.tmp"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_one_line_and_goes_on_later(
    start: Start, tmp_path: Path, undisturbed: RunFolder, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    process = start()
    wait_for(lambda: lines(run) >= 3, process)
    workers = children(process.pid)
    assert len(workers) == 2
    # Ctrl-C reaches every process in front of the terminal, a polite kill only the one.
    for pid in [process.pid, *workers] if number == signal.SIGINT else [process.pid]:
        subprocess.run(["kill", f"-{int(number)}", str(pid)], check=False)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert (
        err
        == "foul: Stopped. What was saved is intact; the same command goes on (learn: --resume).\n"
    )
    assert gone(workers)
    again = start()
    again.communicate(timeout=PATIENCE)
    assert again.returncode == 0
    folder = RunFolder.open(run)
    assert same_bits(folder.load_model()[0], undisturbed.load_model()[0])
    assert without_times(folder) == without_times(undisturbed)


def test_a_killed_worker_costs_one_client_one_round(start: Start, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start()
    wait_for(lambda: lines(run) >= 2, process)
    victim = children(process.pid)[0]
    subprocess.run(["kill", "-9", str(victim)], check=True)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    failures = [record["failures"] for record in RunFolder.open(run).records()]
    (named,) = [failure for failure in failures if failure]
    assert list(named.values()) == ["its worker process died (exit code -9)"]
