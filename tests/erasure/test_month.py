"""A month in the life of a federation, as its engineer types it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config

from foul.config.load import config_to_toml
from foul.erasure.receipts import check_receipt
from foul.erasure.store import Store

from .conftest import LENIENT

pytestmark = pytest.mark.slow

STRICT = LENIENT.replace("mia_auc_high = 1.0", "mia_auc_high = 0.5")
PATIENCE = 300
"""Seconds to wait for anything; far more than it takes."""


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "foul", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )


def foul(*arguments: object, code: int = 0) -> str:
    process = start(*arguments)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return out if code != 2 or out else err


def told(*arguments: object) -> Any:
    return json.loads(foul(*arguments, "--json"))


def test_a_month(tmp_path: Path) -> None:
    run, config = tmp_path / "run", tmp_path / "config.toml"
    settings = small_config(clients__per_domain=4, learning__rounds=2, data__domains=[])
    config.write_text(config_to_toml(settings))
    foul("learn", config, "--out", run, "--quiet")

    # The first: alone.
    foul("erase", "request", run, "--client", "north-0", "--reason", "contract ended")
    policy = Store.open(run).path / "policy.toml"
    policy.write_text(LENIENT)
    foul("erase", "plan", run, 1)
    foul("erase", "run", run, 1, "rounds=1", "-m", "not", "-q")

    # The second starts from its model.
    foul("erase", "request", run, "--client", "east-1")
    foul("erase", "run", run, 2, "rounds=1", "-m", "foul", "-q")

    # A batch, and a smaller request that the batch covers.
    foul("erase", "request", run, "--client", "south-0", "--client", "south-1")
    foul("erase", "request", run, "--client", "west-3")
    (batch,) = told("erase", "run", run, "rounds=1", "-m", "not", "-q")
    assert batch["requests"] == [3, 4]

    # One that fails by policy, is tried again, and overlaps with one that came meanwhile.
    foul("erase", "request", run, "--client", "north-1")
    policy.write_text(STRICT)
    before = (run / "models" / "learned.safetensors").read_bytes()
    assert "policy missed" in foul("erase", "run", run, 5, "rounds=1", "-m", "not", "-q", code=2)
    assert (run / "models" / "learned.safetensors").read_bytes() == before
    policy.write_text(LENIENT)
    foul("erase", "request", run, "--domain", "north")
    (overlapping,) = told("erase", "run", run, 6, "rounds=1", "-m", "retrain", "-q")
    assert overlapping["requests"] == [5, 6]
    assert overlapping["clients"] == ["north-1", "north-2", "north-3"]

    # One comes back, and learning goes on.
    foul("erase", "readmit", run, "north-0", "--reason", "new contract")
    version = told("erase", "relearn", run, "--rounds", 1, "-q")
    assert version["traces"]["north-0"] == "trained"

    # One is killed in the middle; another request arrives before it goes on.
    foul("erase", "request", run, "--client", "west-0")
    killed = start("erase", "run", run, 7, "rounds=40", "-m", "retrain", "-q")
    waiting_since = time.monotonic()
    while not list((run / "unlearning").glob("retrain-*")) and killed.poll() is None:
        assert time.monotonic() - waiting_since < PATIENCE
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert told("erase", "list", run)[6]["state"] == "running"
    foul("erase", "request", run, "--client", "west-1")
    jobs = told("erase", "run", run, "rounds=1", "-q")
    assert [job["requests"] for job in jobs] == [[7], [8]]

    # What a retrained model would have given, for whoever wants to know.
    beside = told("erase", "verify", run, 7, "--retrain", "-q")
    assert beside["retrain"]["ra"] is not None

    # What the officer finds.
    states = [asked["state"] for asked in told("erase", "list", run)]
    assert states == ["done"] * 8
    assert all(finding["ok"] for finding in told("erase", "audit", run, "-q"))
    foul("erase", "check", run / "erasure" / "receipts")
    receipts = sorted((run / "erasure" / "receipts").glob("receipt-*.json"))
    verdicts = [check_receipt(receipt) for receipt in receipts]
    assert all(verdict.ok for verdict in verdicts)
    kinds = [verdict.statement["kind"] for verdict in verdicts]
    assert kinds.count("erasure") == 8
    assert sorted(set(kinds)) == ["erasure", "failure", "readmission", "verification"]
    assert "was readmitted" in foul("erase", "verify", run, 1, "-q", code=2)
    how = [v["how"] for v in told("erase", "lineage", run, "west-0")["versions"]]
    assert how[0] == "trained"
    assert how[-1] != "trained"
