import shutil
from pathlib import Path

import pytest
from small_runs import Crash, StopAfter, small_config

from foul import UserError, learn
from foul.erasure.fingerprint import fingerprint
from foul.erasure.requests import file_request
from foul.erasure.store import Store

from .conftest import MakeStore


def test_a_learned_run_is_adopted_with_what_it_knows(store: Store) -> None:
    state = store.state()
    assert state.federation == "run"
    assert [c.id for c in state.active] == [f"{d}-{n}" for d in ("east", "north") for n in range(3)]
    assert all(client.rounds == ((1, 2),) for client in state.active)
    assert state.current.number == 0
    assert state.current.hash == fingerprint(store.folder.load_model()[0]) == store.service_hash()
    assert set(state.current.traces.values()) == {"trained"}
    down = [record["costs"]["north-1"]["bytes_down"] for record in store.folder.records()]
    assert state.basis["clients"]["north-1"]["bytes_down"] == sum(down) / 2


def test_opening_again_changes_nothing(store: Store) -> None:
    before = store.entries()
    assert Store.open(store.folder.path).entries() == before
    assert Store.read(store.folder.path).entries() == before


def test_looking_makes_nothing(learned_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(learned_run, tmp_path / "run"))
    before = sorted(run.rglob("*"))
    with pytest.raises(UserError, match=r"no erasure ledger yet.*foul erase request"):
        Store.read(run)
    assert sorted(run.rglob("*")) == before


def test_a_run_that_still_learns_has_nothing_to_erase(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        learn(small_config(), tmp_path / "run", observer=StopAfter(1))
    with pytest.raises(UserError, match=r"has not finished learning.*foul learn --resume"):
        Store.open(tmp_path / "run")
    assert not (tmp_path / "run" / "erasure").exists()


def test_a_lost_ledger_is_not_begun_anew(served: Store) -> None:
    served.ledger.file.unlink()
    for opening in (Store.open, Store.read):
        with pytest.raises(UserError, match=r"is gone.*Put a backup"):
            opening(served.folder.path)


def test_one_process_serves_and_others_may_file(make_store: MakeStore) -> None:
    store = make_store()
    with store.serving():
        with (
            pytest.raises(UserError, match="Another process is serving erasures"),
            Store.open(store.folder.path).serving(),
        ):
            raise AssertionError
        assert file_request(Store.open(store.folder.path), "client:east-0").number == 1
    with store.serving():
        pass


def test_the_ledger_leads_and_files_follow(served: Store) -> None:
    served.folder.write_erased(["east-2"])
    facts = served.folder.facts()
    served.folder.write_facts(facts | {"clients": facts["clients"][:1]})
    served.sync()
    assert served.folder.erased() == {"north-1"}
    assert served.folder.facts() == facts
    assert len(facts["clients"]) == 5
