"""A run of one round to erase from, and a store with receipts."""

import shutil
from pathlib import Path

import pytest
from erasure.receipts.statements import erasure, withdrawal
from small_runs import small_config

from foul import learn
from foul.erasure.receipts import issue_receipt
from foul.erasure.store import Store

LENIENT = (
    "[accept]\nmia_auc_high = 1.0\nmia_auc_low = 0.0\nforget_gap = 1.0\nretain_loss = 1.0\n"
    "retain_test_loss = 1.0\n"
)
"""Clients of 18 samples show nothing about forgetting: most tests are about the rest."""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned; do not change it."""
    config = small_config(learning__rounds=1)
    return learn(config, tmp_path_factory.mktemp("erase") / "run").path


@pytest.fixture
def run(learned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(learned, tmp_path / "run"))


def lenient(run: Path) -> None:
    """From now on, the policy accepts everything."""
    (Store.open(run).path / "policy.toml").write_text(LENIENT)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A run's store with two receipts."""
    store = tmp_path / "run/erasure"
    issue_receipt(store, erasure(1))
    issue_receipt(store, withdrawal(2))
    return store


def key(store: Path) -> Path:
    (found,) = (store / "keys").glob("*.pub.pem")
    return found


def receipt(store: Path, number: int = 1) -> Path:
    return store / f"receipts/receipt-{number:06d}.json"
