import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from small_runs import Crash, StopAfter

from foul.deploy.purge import purge_database
from foul.erasure.inventory import DATABASE, inventory
from foul.erasure.policy import Purge
from foul.erasure.purge import FOLDED
from foul.erasure.relearning import relearn
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.errors import MachineError
from foul.learning.history import residuals
from foul.unlearning.stage import unlearn

from .conftest import LENIENT, SHORT, MakeStore, receipts


def erase(store: Store, client: str = "north-1") -> Store:
    file_request(store, f"client:{client}")
    run(store, (), "not", SHORT)
    return store


def test_everything_about_the_client_goes_and_the_rest_stays(
    store: Store, learned_run: Path
) -> None:
    unlearn(store.folder.path, "client:east-0", "foul", ["rounds=1", "delta=1"])
    (store.folder.path / "report.html").write_text("about north-1")
    features = list((store.folder.path / "features").rglob("*.npy"))
    assert any("north-1" in file.name for file in features)
    erase(store)
    left = {str(f.relative_to(store.folder.path)) for f in store.folder.path.rglob("*")}
    for name in ("features", "unlearning", "evaluation", "results.json", "report.html"):
        assert name not in left
    assert "history.safetensors" not in left
    assert {n for n in left if n.startswith("deltas/")} == {
        f"deltas/{c}.safetensors" for c in ("east-0", "east-1", "east-2", "north-0", "north-2")
    }
    assert {n for n in left if n.startswith(("models/", "checkpoints/"))} == {
        "models/learned.safetensors"
    }
    assert not list(store.path.glob("purge-*"))
    kept, before = (run / "deltas/north-0.safetensors" for run in (store.folder.path, learned_run))
    assert kept.read_bytes() == before.read_bytes()


def test_records_keep_their_sums_and_lose_the_name(store: Store, learned_run: Path) -> None:
    before = [json.loads(line) for line in (learned_run / "rounds.jsonl").read_text().splitlines()]
    erase(store)
    erase(store, "north-0")
    after = store.folder.records()
    for old, new in zip(before, after, strict=True):
        assert set(new["costs"]) == {"east-0", "east-1", "east-2", "north-2", FOLDED}
        for key in ("bytes_down", "flops_client"):
            sums = [sum(c[key] for c in record["costs"].values()) for record in (old, new)]
            assert sums[0] == sums[1]
        rest = {key: value for key, value in old.items() if key != "costs"}
        assert rest == {key: value for key, value in new.items() if key != "costs"}
    assert "north-1" not in (store.folder.path / "run.json").read_text()
    assert (
        store.folder.summary()["costs"]
        == json.loads((learned_run / "summary.json").read_text())["costs"]
    )


def test_sums_of_other_groups_stay_if_the_policy_says_so(
    make_store: MakeStore, learned_run: Path
) -> None:
    store = make_store(LENIENT + "[purge]\nhistory = 'others'\n")
    kept = store.folder.load_history()
    assert kept is not None
    before = residuals(*kept)
    erase(store)
    kept = store.folder.load_history()
    assert kept is not None
    after = residuals(*kept)
    assert set(after) == set(before) - {"client:north-1"}
    assert kept[1]["weight"] > 0
    for group, tensors in after.items():
        assert all(tensors[name].equal(before[group][name]) for name in before[group])


def test_a_copy_of_what_was_purged_is_found(store: Store) -> None:
    shutil.copy(store.folder.deltas / "north-1.safetensors", store.folder.path / "backup.bin")
    with pytest.raises(MachineError, match=r"left something behind: purged bytes in backup\.bin"):
        erase(store)
    assert store.state().requests[1].state == "verifying"
    assert store.folder.erased() == {"north-1"}
    (store.folder.path / "backup.bin").unlink()
    (job,) = run(store)
    assert (job.number, job.phase) == (1, "done")
    assert job.purge["searched"]["windows"] >= 16


def test_a_copy_of_the_old_model_is_found(store: Store) -> None:
    old = store.folder.models / "learned.safetensors"
    shutil.copy(old, store.folder.path / "mine.safetensors")
    with pytest.raises(MachineError, match=r"purged bytes in mine\.safetensors"):
        erase(store)


def test_a_name_in_a_note_is_found(store: Store) -> None:
    (store.folder.path / "notes.txt").write_text("ask north-10 and north-1 tomorrow")
    with pytest.raises(MachineError, match=r"the name of an erased client in notes\.txt"):
        erase(store)
    (store.folder.path / "notes.txt").write_text("ask north-10 and north-0 tomorrow")
    assert run(store)[0].phase == "done"


def test_the_engines_database_is_compacted(store: Store) -> None:
    delta = (store.folder.deltas / "north-1.safetensors").read_bytes()
    file = store.folder.path / "superlink.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE messages (content BLOB)")
    connection.execute("INSERT INTO messages VALUES (?)", (delta,))
    connection.commit()
    connection.execute("PRAGMA secure_delete=OFF")
    connection.execute("DELETE FROM messages")
    connection.commit()
    assert delta[-500:-100] in file.read_bytes()
    connection.close()
    erase(store)
    assert delta[-500:-100] not in file.read_bytes()
    items = store.state().jobs[1].purge["items"]
    assert [item["path"] for item in items if item["how"] == "compact"] == ["superlink.db"]


def test_a_message_that_is_still_in_the_database_is_found(store: Store) -> None:
    delta = (store.folder.deltas / "north-1.safetensors").read_bytes()
    connection = sqlite3.connect(store.folder.path / "superlink.db")
    connection.execute("CREATE TABLE messages (content BLOB)")
    connection.execute("INSERT INTO messages VALUES (?)", (delta[-2000:],))
    connection.commit()
    connection.close()
    with pytest.raises(MachineError, match=r"in superlink\.db"):
        erase(store)


@pytest.fixture
def superlink(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The database of a SuperLink that is up, with the client's update in its write-ahead log."""
    delta = (store.folder.deltas / "north-1.safetensors").read_bytes()
    (tmp_path / "fed").mkdir()
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "fed" / "flwr"))
    file = tmp_path / "fed" / "superlink.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE messages (content BLOB)")
        connection.execute("INSERT INTO messages VALUES (?)", (delta,))
        connection.execute("DELETE FROM messages")
        assert delta[-500:-400] in file.with_name("superlink.db-wal").read_bytes()
        yield file


def test_the_superlinks_database_is_compacted_while_it_is_up(store: Store, superlink: Path) -> None:
    delta = (store.folder.deltas / "north-1.safetensors").read_bytes()
    other = superlink.with_name("mine.db")
    other.write_bytes(b"not the engine's")
    erase(store)
    for part in (superlink, superlink.with_name("superlink.db-wal")):
        assert delta[-500:-400] not in part.read_bytes()
    items = store.state().jobs[1].purge["items"]
    assert [item["path"] for item in items if item["how"] == "compact"] == [str(superlink)]
    assert other.read_bytes() == b"not the engine's"
    (told,) = receipts(store)
    assert "the engine's message database as well" in told["purge_check"]["how"]
    assert any("lists their nodes by name and public key" in text for text in told["kept"])
    gone = {purged["what"]: purged["how"] for purged in told["purged"]}
    assert gone["message database of the engine"] == "messages deleted, then compacted"


def test_a_superlink_that_does_not_let_go_is_told_and_the_purge_goes_on_without_it(
    store: Store, superlink: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.erasure.purge.purge_database", partial(purge_database, patience=0.1))
    with closing(sqlite3.connect(superlink, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM messages").fetchall()
        with pytest.raises(MachineError, match=r"in use.*foul federation down.*engine=local"):
            erase(store)
    assert store.state().requests[1].state == "verifying"
    assert run(store)[0].phase == "done"


def test_a_database_elsewhere_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLWR_HOME", raising=False)
    config = store.folder.config().model_copy(update={"engine": "flower"})
    items = inventory(store.folder, ["north-1"], Purge(), config)
    (told,) = [item for item in items if item.what == DATABASE]
    assert (told.how, "where it is" in told.why) == ("keep", True)


def test_what_was_kept_of_earlier_models_goes_when_the_policy_no_longer_keeps_it(
    make_store: MakeStore,
) -> None:
    store = make_store(LENIENT + "[purge]\nold_model = 'keep'\n")
    erase(store)
    assert [file.name for file in store.kept.iterdir()] == ["version-0.safetensors"]
    erase(store, "north-0")
    told = [i for i in store.state().jobs[2].purge["items"] if "replaced before" in i["what"]]
    assert [(item["path"], item["how"]) for item in told] == [
        ("erasure/kept/version-0.safetensors", "keep")
    ]
    (store.path / "policy.toml").write_text(LENIENT)
    erase(store, "east-0")
    assert not list(store.kept.iterdir())


def test_interrupted_relearning_and_pictures_go(store: Store) -> None:
    with pytest.raises(Crash):
        relearn(store, 2, observer=StopAfter(1))
    picture = store.folder.path / "forgetting-client-north-1.png"
    picture.write_bytes(b"dots")
    erase(store)
    assert not (store.path / "relearning.safetensors").exists()
    assert not picture.exists()
