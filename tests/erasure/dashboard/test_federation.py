from pathlib import Path

import pytest

from foul.erasure.dashboard.federation import federations
from foul.errors import UserError

from .example import new_store


def test_runs_of_the_same_name_get_names_that_differ(tmp_path: Path) -> None:
    runs = [tmp_path / "north" / "My Run", tmp_path / "south" / "my-run", tmp_path / "other"]
    for run in runs:
        run.parent.mkdir(exist_ok=True)
        new_store(run)
    assert [each.name for each in federations(runs)] == ["my-run", "my-run-2", "other"]


def test_a_run_without_a_ledger_is_named(tmp_path: Path) -> None:
    new_store(tmp_path / "one")
    (tmp_path / "one/erasure/ledger.sqlite").unlink()
    with pytest.raises(UserError, match=r"one has no erasure ledger yet"):
        federations([tmp_path / "one"])
    with pytest.raises(UserError, match="is not a run folder"):
        federations([tmp_path])


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    new_store(tmp_path / "one")
    (tmp_path / "one/erasure/ledger.sqlite").write_bytes(b"no database" * 500)
    with pytest.raises(UserError, match=r"ledger .* is damaged"):
        federations([tmp_path / "one"])


def test_looking_changes_no_file(tmp_path: Path) -> None:
    new_store(tmp_path / "one")
    before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    (own,) = federations([tmp_path / "one"])
    own.store().state()
    own.receipts()
    assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before
