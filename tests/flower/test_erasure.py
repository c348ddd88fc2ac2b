"""A client is erased from a federation of real processes, and nothing of it is left there."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from erasure.conftest import LENIENT, receipts
from small_runs import small_config

from foul.deploy.federation import RunningFederation, running_federation
from foul.deploy.purge import database_files
from foul.erasure.audit import audit
from foul.erasure.store import Store
from foul.erasure.traces import sample_windows

pytestmark = pytest.mark.slow

CLIENTS = ["east-0", "east-1", "north-0"]
ERASED = "east-1"
PATIENCE = 1200.0
"""Seconds until a command must have ended, on the slowest machine."""

Foul = Callable[..., str]


@pytest.fixture
def federation() -> Iterator[RunningFederation]:
    config = small_config(
        learning__rounds=2, flower__clients=CLIENTS, flower__wait=900, flower__deadline=600
    )
    # Not below pytest's folder: a socket's path must be short.
    with (
        tempfile.TemporaryDirectory(prefix="foul-") as folder,
        running_federation(config, Path(folder, "fed"), CLIENTS, patience=PATIENCE) as federation,
    ):
        yield federation


@pytest.fixture
def foul(federation: RunningFederation, tmp_path: Path) -> Foul:
    """Runs `foul ARGUMENTS` as its user would; answers what it printed."""

    def run(*arguments: object, code: int = 0) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "foul", *map(str, arguments)],
            cwd=tmp_path,
            env=federation.driver_env(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == code, f"{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr

    return run


def found(windows: list[bytes], database: Path) -> int:
    """How many of these samples are in the files of a database."""
    content = b"".join(file.read_bytes() for file in database_files(database))
    return sum(window in content for window in windows)


def test_an_erasure_at_the_nodes_leaves_nothing_in_the_superlinks_database(
    federation: RunningFederation, foul: Foul, tmp_path: Path
) -> None:
    run, database = tmp_path / "run", federation.folder.database
    foul("learn", federation.folder.config, "--out", "run", "-q")
    old = sample_windows(run / "models" / "learned.safetensors", b"")
    # Else the test would not notice a purge that does nothing.
    assert found(old, database)

    assert "R-0001" in foul("erase", "request", "run", "--client", ERASED)
    (run / "erasure" / "policy.toml").write_text(LENIENT)
    told = foul("erase", "run", "run", "1", "rounds=1", "-m", "not", "-q")
    assert "R-0001 done: version 1" in told
    assert not list(tmp_path.glob(".*.job"))

    store = Store.read(run)
    (receipt,) = receipts(store)
    assert (receipt["clients"], receipt["method"]["engine"]) == ([ERASED], "flower")
    assert "the engine's message database as well" in receipt["purge_check"]["how"]
    assert [
        item["path"] for item in store.state().jobs[1].purge["items"] if item["how"] == "compact"
    ] == [str(database)]
    assert all(finding.ok for finding in audit(store))
    foul("erase", "check", run / "erasure" / "receipts")
    assert not found(old, database)

    # The SuperLink goes on as before; the erased client's node is up and is asked for nothing.
    assert "was erased already" in foul("erase", "request", "run", "--client", ERASED, code=2)
    assert "was erased" in foul("unlearn", "run", "--forget", f"client:{ERASED}", code=2)
    assert ERASED in federation.online()
    assert "Version 2" in foul("erase", "relearn", "run", "--rounds", "1", "-q")
    assert set(store.entries()[-1].body["participation"]) == {"east-0", "north-0"}
    federation.unregister(ERASED)
    assert ERASED not in federation.online()
