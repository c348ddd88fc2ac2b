"""Stopped anywhere, an erasure goes on: nothing is lost, nothing is done twice."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foul.erasure import ledger as ledger_module
from foul.erasure.audit import audit
from foul.erasure.receipts import check_receipt
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store

from .conftest import LENIENT

pytestmark = pytest.mark.slow

POINTS = 50


class Killed(BaseException):
    """What happens instead of the next write; no handler of errors sees it."""


class Writes:
    """Counts everything that changes the disk, and stops at one of them, before or after it."""

    def __init__(self, stop: int | None = None) -> None:
        self.count, self._stop = 0, stop

    def around(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **values: Any) -> Any:
            self._tick()
            answer = write(*arguments, **values)
            self._tick()
            return answer

        return counted

    def _tick(self) -> None:
        self.count += 1
        if self.count == self._stop:
            raise Killed


def watched(patch: pytest.MonkeyPatch, writes: Writes) -> None:
    patch.setattr(os, "replace", writes.around(os.replace))
    patch.setattr(os, "fsync", writes.around(os.fsync))
    patch.setattr(Path, "unlink", writes.around(Path.unlink))
    patch.setattr(Path, "mkdir", writes.around(Path.mkdir))
    patch.setattr(ledger_module, "_insert", writes.around(ledger_module._insert))
    patch.setattr(ledger_module.Ledger, "append", writes.around(ledger_module.Ledger.append))


def fresh(learned_run: Path, place: Path) -> Store:
    store = Store.open(Path(shutil.copytree(learned_run, place)))
    (store.path / "policy.toml").write_text(LENIENT)
    file_request(store, "client:north-1")
    return store


def serve(store: Store) -> None:
    run(store, [1], "retrain", ["rounds=1"])


def assert_served_once(store: Store, expected: str) -> None:
    state = store.state()
    counts = Counter(entry.kind for entry in store.entries())
    for kind in ("started", "unlearned", "judged", "promoted", "purged", "issued", "finished"):
        assert counts[kind] == 1, kind
    assert state.requests[1].state == "done"
    assert state.current.hash == store.service_hash() == expected
    assert len(list(store.receipts.glob("receipt-*.json"))) == 1
    assert check_receipt(store.receipts).ok
    assert [finding for finding in audit(store) if not finding.ok] == []
    assert not list(store.folder.path.rglob("*.tmp"))


def test_killed_at_fifty_random_writes(
    learned_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, writes = fresh(learned_run, tmp_path / "whole"), Writes()
    old = whole.service_hash()
    with monkeypatch.context() as patch:
        watched(patch, writes)
        serve(whole)
    new = whole.service_hash()
    assert_served_once(whole, new)
    assert writes.count >= 2 * POINTS, writes.count
    phases = Counter[str]()
    for point in sorted(random.Random(0).sample(range(1, writes.count + 1), POINTS)):
        store = fresh(learned_run, tmp_path / f"point-{point}")
        with monkeypatch.context() as patch:
            watched(patch, Writes(point))
            with pytest.raises(Killed):
                serve(store)
        state = store.state()
        phases[state.jobs[1].phase if state.jobs else "none"] += 1
        # Whole, and either the old or the new one; the old one until the evidence is accepted.
        in_service = store.service_hash()
        assert in_service in (old, new)
        if not state.erased:
            assert in_service == old
        serve(Store.open(store.folder.path))
        assert_served_once(store, new)
        shutil.rmtree(store.folder.path)
    assert len(phases) >= 4, phases


def test_a_process_that_is_really_killed(learned_run: Path, tmp_path: Path) -> None:
    whole = fresh(learned_run, tmp_path / "whole")
    began = time.monotonic()
    command(whole).wait()
    took = time.monotonic() - began
    expected = whole.service_hash()
    store, rng = fresh(learned_run, tmp_path / "run"), random.Random(0)
    for _ in range(4):
        process = command(store)
        time.sleep(rng.uniform(0.3, 1.0) * took)
        process.kill()
        process.wait()
        Store.open(store.folder.path).state()
    last = command(store)
    assert last.wait() == 0
    assert_served_once(store, expected)


def command(store: Store) -> subprocess.Popen[bytes]:
    arguments = ["erase", "run", str(store.folder.path), "1", "rounds=1", "-m", "retrain", "-q"]
    return subprocess.Popen(
        [sys.executable, "-m", "foul", *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
