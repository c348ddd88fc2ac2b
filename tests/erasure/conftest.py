"""A federation of six clients that has learned, and the same after one erasure."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config

from foul import learn
from foul.erasure.receipts import check_receipt
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store

MakeStore = Callable[..., Store]

LENIENT = """
[accept]
mia_auc_high = 1.0
mia_auc_low = 0.0
forget_gap = 1.0
retain_loss = 1.0
retain_test_loss = 1.0
"""
"""Clients of 18 samples show nothing about forgetting: most tests are about the rest."""

SHORT = ["rounds=1"]


@pytest.fixture(scope="session")
def learned_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned; do not change it."""
    config = small_config(
        clients__per_domain=3,
        learning__rounds=2,
        federation__keep_deltas=True,
        federation__history="clients",
    )
    return learn(config, tmp_path_factory.mktemp("erasure") / "run").path


@pytest.fixture
def make_store(learned_run: Path, tmp_path: Path) -> MakeStore:
    """Makes a store of its own, with a policy."""

    def make(policy: str = LENIENT, name: str = "run") -> Store:
        store = Store.open(Path(shutil.copytree(learned_run, tmp_path / name)))
        (store.path / "policy.toml").write_text(policy)
        return store

    return make


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store()


@pytest.fixture(scope="session")
def served_run(learned_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run after north-1 was erased by NoT; do not change it."""
    place = tmp_path_factory.mktemp("served") / "run"
    store = Store.open(Path(shutil.copytree(learned_run, place)))
    (store.path / "policy.toml").write_text(LENIENT)
    file_request(store, "client:north-1", "contract ended")
    run(store, [1], "not", SHORT)
    return store.folder.path


@pytest.fixture
def served(served_run: Path, tmp_path: Path) -> Store:
    """A copy of it that may be changed."""
    return Store.open(Path(shutil.copytree(served_run, tmp_path / "served")))


def kinds(store: Store) -> list[str]:
    """What happened, entry by entry."""
    return [entry.kind for entry in store.entries()]


def receipts(store: Store) -> list[dict[str, Any]]:
    """What all receipts state, after they were checked."""
    assert check_receipt(store.receipts).ok
    files = sorted(store.receipts.glob("receipt-*.json"))
    return [check_receipt(file).statement for file in files]
